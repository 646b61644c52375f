import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type BoardAct, readAct, readActRequest } from "../../src/board/act/act.ts";
import { OperatorActs } from "../../src/board/act/operator-acts.ts";
import { readClusterPolicy } from "../../src/config/policy/parse-policy-object.ts";
import type { KubeApi, KubeRequest } from "../../src/contracts/kube-api.ts";
import { seededRng } from "../../src/core/chance/chance.ts";
import { decide } from "../../src/core/decide.ts";
import { cronProblem } from "../../src/core/limits/windows.ts";
import { inEnglish, type Saying } from "../../src/core/reason/english.ts";
import { hours, type Instant, instant, plus } from "../../src/core/time/time.ts";
import { KubeDepartureStore, KubeOperatorWrites } from "../../src/kube/departure-store.ts";
import { KubeFleet } from "../../src/kube/fleet.ts";
import { KubeNodePods } from "../../src/kube/node/node-pods.ts";
import { translated } from "../../src/web/words/translated.ts";
import { everyMachine } from "../core/fleet-builder.ts";
import {
  dawn,
  departures,
  ModelWorld,
  nodes,
  policies,
  spotPolicy,
} from "../support/model-world.ts";

let world: ModelWorld;
let acts: ReturnType<typeof heard>;
let fleet: KubeFleet;
let writes: string[];
let refuse: (request: KubeRequest) => boolean;
let over: AbortController;

beforeEach(async () => {
  world = new ModelWorld();
  writes = [];
  said = [];
  refuse = () => false;
  over = new AbortController();
  for (const name of ["n1", "n2"]) world.addNode(name, "a");
  spotPolicy(world, { lifetime: { max: "24h" } });
  const api: KubeApi = {
    send: (request) => {
      // A review is a POST that stores nothing.
      const isRead = request.method === "GET" || request.path.endsWith("/selfsubjectreviews");
      if (isRead) return world.api.send(request);
      writes.push(`${request.method} ${request.path}`);
      const body = { kind: "Status", reason: "Forbidden", message: "eve may not do that" };
      return refuse(request) ? Promise.resolve({ status: 403, body }) : world.api.send(request);
    },
    watch: (request) => world.api.watch(request),
  };
  const { clock } = world;
  const rng = seededRng(1);
  fleet = new KubeFleet({
    ...{ api, clock, rng, onError: () => {} },
    readPolicy: (object) => readClusterPolicy(object, { cronProblem }),
  });
  void fleet.run(over.signal);
  await fleet.synced(over.signal);
  const own = new OperatorActs({
    fleet,
    pods: new KubeNodePods({ api, clock, rng }),
    store: new KubeDepartureStore(api),
    writes: new KubeOperatorWrites(api),
    now: () => clock.now(),
  });
  acts = heard(own);
});
afterEach(() => {
  over.abort();
  for (const one of said) expect([one, englishIn(one)]).toEqual([one, []]);
});

/** Everything said to a person, except the API server's own messages. */
let said: Saying[];

/** The English words left in a Japanese sentence, apart from names and times. */
function englishIn(saying: Saying): readonly string[] {
  const kept =
    /n\d[\w-]*|lifetime\.max|lastcall\.dev\/hold|cordon|"4h"|none|[\d-]+T[\d:.]+Z|spot\b|Pod/g;
  const text = translated(saying, "ja").replaceAll(kept, "");
  return text.match(/[A-Za-z]+/g) ?? [];
}

function hear(...sayings: readonly Saying[]): void {
  for (const one of sayings) if (!inEnglish(one).includes("eve may not")) said.push(one);
}

/** As a person reads it in English. */
function heard(of: OperatorActs) {
  return {
    preview: async (act: BoardAct) => {
      const { says, refusal, ...preview } = await of.preview(act);
      hear(...says, ...(refusal === null ? [] : [refusal]));
      return { ...preview, says: says.map(inEnglish), refusal: refusal && inEnglish(refusal) };
    },
    perform: async (request: Parameters<OperatorActs["perform"]>[0]) => {
      const { kind, says } = await of.perform(request);
      hear(says);
      return { kind, says: inEnglish(says) };
    },
  };
}

const uidOf = (name: string): string => world.get(`${nodes}/${name}`)?.metadata?.uid ?? "";
const holdOn = (name: string): string | undefined =>
  world.get(`${nodes}/${name}`)?.metadata?.annotations?.["lastcall.dev/hold"];
const hold = (name: string, until: Instant | null = null): BoardAct => {
  return { kind: "Hold", node: name, uid: uidOf(name), until };
};
const depart = (name: string, by: Instant | null = null): BoardAct => {
  return { kind: "Depart", node: name, uid: uidOf(name), at: null, by };
};

let keys = 0;
/** Performs an act as a person does who has seen the preview. */
async function perform(act: BoardAct) {
  const { seen } = await acts.preview(act);
  keys += 1;
  const answer = await acts.perform({ act, seen, key: `key-${keys}-of-this-test` });
  await world.pass(hours(0));
  return answer;
}

describe("an act", () => {
  it("writes nothing in a preview", async () => {
    for (const act of [hold("n1"), depart("n1")]) await acts.preview(act);
    expect(writes).toEqual([]);
  });

  it("puts a hold on a node, says what ends it all the same, and removes it", async () => {
    const until = plus(dawn, hours(30));
    const { command, says } = await acts.preview(hold("n1", until));
    const set = "kubectl annotate node n1 --overwrite lastcall.dev/hold=2026-11-21T06:00:00Z";
    expect(command).toBe(set);
    expect(says.at(-1)).toMatch(/^n1 leaves at its deadline \S+ even so$/);
    expect((await acts.preview(hold("n1"))).says.at(-1)).toMatch(
      /^The lifetime\.max of n1 .+ even so: /,
    );
    expect((await acts.preview(hold("n1", plus(dawn, hours(1))))).says).toHaveLength(2);
    expect(await perform(hold("n1", until))).toMatchObject({ kind: "Done" });
    expect(holdOn("n1")).toBe("2026-11-21T06:00:00Z");
    const release: BoardAct = { kind: "ReleaseHold", node: "n1", uid: uidOf("n1") };
    expect(await perform(release)).toMatchObject({ kind: "Done" });
    expect(holdOn("n1")).toBeUndefined();
  });

  it("is performed once, however often its request arrives", async () => {
    const act = depart("n1");
    const { seen } = await acts.preview(act);
    const request = { act, seen, key: "one-key-of-one-act" };
    const answers = await Promise.all([1, 2, 3].map(() => acts.perform(request)));
    expect(new Set(answers.map(({ kind }) => kind))).toEqual(new Set(["Done"]));
    await acts.perform(request);
    expect(writes).toEqual([`POST ${departures}`]);
    expect(world.list(departures)).toHaveLength(1);
  });

  it("is rejected if somebody else has changed the object since the preview", async () => {
    const act = hold("n1");
    const { seen } = await acts.preview(act);
    world.patchNode("n1", { metadata: { annotations: { "lastcall.dev/hold": "4h" } } });
    const early = await acts.perform({ act, seen, key: "before-the-watch-tells" });
    expect(early).toEqual({
      kind: "Refused",
      says: 'Somebody else changed it first: its hold is "4h"',
    });
    await world.pass(hours(0));
    const late = await acts.perform({ act, seen, key: "after-the-watch-told" });
    expect(late).toMatchObject({ kind: "Refused", says: expect.stringContaining("changed") });
    expect(holdOn("n1")).toBe("4h");
    expect(writes).toEqual([]);
  });

  it.each([
    ["moves the request", { at: plus(dawn, hours(9)) }],
    ["gives the request a deadline", { by: plus(dawn, hours(9)) }],
  ])("is rejected if a colleague %s after the preview", async (_, change) => {
    const at = (count: number) => ({ ...depart("n1"), at: plus(dawn, hours(count)) }) as BoardAct;
    await perform(at(3));
    const { name = "", uid = "" } = world.departureOf("n1")?.metadata ?? {};
    const withdraw: BoardAct = { kind: "Withdraw", departure: name, uid };
    const shown = [];
    for (const act of [at(1), withdraw]) shown.push({ act, seen: (await acts.preview(act)).seen });
    expect(await perform({ ...at(3), ...change } as BoardAct)).toMatchObject({ kind: "Done" });
    const { spec } = world.departureOf("n1") ?? {};
    for (const { act, seen } of shown) {
      const answer = await acts.perform({ act, seen, key: `${act.kind}-after-a-colleague` });
      expect(answer).toMatchObject({ kind: "Refused", says: expect.stringContaining("changed") });
    }
    expect(world.departureOf("n1")?.spec).toEqual(spec);
  });

  it("creates one departure if two people request it at once", async () => {
    const act = depart("n1");
    const { seen } = await acts.preview(act);
    const answers = await Promise.all(
      ["one", "two"].map((who) => acts.perform({ act, seen, key: `${who}-person` })),
    );
    expect(answers.map(({ kind }) => kind).toSorted()).toEqual(["Done", "Refused"]);
    expect(world.list(departures)).toHaveLength(1);
  });

  it("says that a request overrides a hold or a freeze, and is rejected if that is new", async () => {
    const act = depart("n1");
    const { seen } = await acts.preview(act);
    expect(await perform(hold("n1"))).toMatchObject({ kind: "Done" });
    const answer = await acts.perform({ act, seen, key: "the-node-is-held" });
    expect(answer).toMatchObject({ kind: "Refused", says: expect.stringContaining("changed") });
    expect(world.list(departures)).toEqual([]);
    const until = plus(dawn, hours(2));
    expect(await perform({ kind: "Freeze", policy: "spot", until })).toMatchObject({
      kind: "Done",
    });
    const again = await acts.preview(act);
    expect(again.says).toEqual([
      "n1 leaves now",
      "n1 leaves although its annotation lastcall.dev/hold holds it",
      "n1 leaves although policy spot is frozen until 2026-11-20T02:00:00Z",
      "It ignores windows, freezes and holds",
    ]);
    const done = await acts.perform({ act, seen: again.seen, key: "it-leaves-all-the-same" });
    expect(done.kind).toBe("Done");
    await world.pass(hours(0));
    // The controller's decision about it.
    const snapshot = { ...fleet.view(), gateAnswers: {}, releaseAnswers: everyMachine };
    const { decisions } = decide(snapshot, world.clock.now());
    expect(decisions).toContainEqual(
      expect.objectContaining({ kind: "Begin", reason: "Requested" }),
    );
    expect(await perform(hold("n2", until))).toMatchObject({ kind: "Done" });
    const { says } = await acts.preview(depart("n2"));
    expect(says).toContain("n2 leaves although it is held until 2026-11-20T02:00:00Z");
  });

  it("says that a request waits for budgets, and that nothing leaves in a dry run", async () => {
    world.patchPolicy({ spec: { budgets: [{ nodes: 1 }] } });
    await world.pass(hours(0));
    expect((await acts.preview(depart("n1"))).says).toContain(
      "It waits for the budgets of policy spot, but ignores windows, freezes and holds",
    );
    world.patchPolicy({ spec: { dryRun: true, paused: true } });
    await world.pass(hours(0));
    expect((await acts.preview(depart("n1"))).says).toEqual([
      "Policy spot has dryRun set: n1 does not leave",
    ]);
    world.patchPolicy({ spec: { dryRun: false } });
    await world.pass(hours(0));
    expect((await acts.preview(depart("n1"))).says).toContain(
      "n1 leaves although policy spot is paused",
    );
  });

  it("says that a freeze would end sooner than the current one", async () => {
    const freeze = (count: number): BoardAct => {
      return { kind: "Freeze", policy: "spot", until: plus(dawn, hours(count)) };
    };
    expect(await perform(freeze(72))).toMatchObject({ kind: "Done" });
    expect((await acts.preview(freeze(4))).says[1]).toBe(
      "That ends the current freeze of policy spot sooner: it is frozen until 2026-11-23T00:00:00Z",
    );
    expect((await acts.preview(freeze(96))).says).toHaveLength(2);
  });

  it("never applies to another node of the same name", async () => {
    const act = hold("n1");
    const { seen } = await acts.preview(act);
    world.api.handle({ method: "DELETE", path: `${nodes}/n1` });
    world.addNode("n1", "a");
    const answer = await acts.perform({ act, seen, key: "the-node-is-another" });
    expect(answer.kind).toBe("Refused");
    expect(holdOn("n1")).toBeUndefined();
  });

  it("shows which pods leave and how long that takes before a node departs", async () => {
    world.create("/api/v1/namespaces/default/pods", {
      ...{ apiVersion: "v1", kind: "Pod", metadata: { name: "web" } },
      spec: {
        nodeName: "n1",
        terminationGracePeriodSeconds: 45,
        containers: [{ name: "main", image: "registry.example/web:1" }],
      },
      status: { phase: "Running" },
    });
    const { drain, refusal, says } = await acts.preview(depart("n1"));
    expect(refusal).toBeNull();
    expect(says[0]).toBe("n1 leaves now");
    expect(drain?.pods).toMatchObject([{ name: "web", graceSeconds: 45, cut: false }]);
    const hurried = await acts.preview(depart("n1", plus(dawn, 30_000 as never)));
    // A person's request is not a notice: no pod is cut or forced.
    expect(hurried.drain).toMatchObject({ noticeSeconds: null });
    expect(hurried.drain?.pods).toMatchObject([
      { name: "web", graceSeconds: 45, cut: false, forceAtSeconds: null },
    ]);
  });

  it("says by when a moved request ends, and plans the drain with that", async () => {
    const job = { selector: { matchLabels: { app: "job" } }, action: "WaitCompleted" };
    world.patchPolicy({ spec: { drain: { podRules: [job] } } });
    world.create("/api/v1/namespaces/default/pods", {
      ...{ apiVersion: "v1", kind: "Pod", metadata: { name: "job", labels: { app: "job" } } },
      spec: { nodeName: "n1", containers: [{ name: "main", image: "registry.example/job:1" }] },
      status: { phase: "Running" },
    });
    const at = (count: number) => ({ ...depart("n1"), at: plus(dawn, hours(count)) }) as BoardAct;
    await perform({ ...at(3), by: plus(dawn, hours(4)) } as BoardAct);
    const kept = await acts.preview(at(1));
    expect(kept.says[0]).toBe(
      "n1 leaves at 2026-11-20T01:00:00Z, by 2026-11-20T04:00:00Z instead of the time requested earlier",
    );
    expect(kept.drain?.pods).toMatchObject([{ name: "job", startSeconds: 3 * 3600 }]);
    // An earlier deadline that the new time has passed no longer counts.
    const dropped = await acts.preview(at(5));
    expect(dropped.says[0]).not.toContain(", by ");
    expect(dropped.drain?.pods).not.toMatchObject([{ startSeconds: 3 * 3600 }]);
  });

  it("warns of a departure after the node's deadline", async () => {
    const at = (count: number) => ({ ...depart("n1"), at: plus(dawn, hours(count)) }) as BoardAct;
    const said = async (act: BoardAct) => (await acts.preview(act)).says.join("\n");
    // Its lifetime of 24 hours, less the reserve of half an hour.
    expect(await said(at(24))).toContain("That is after its deadline 2026-11-20T23:30:00Z");
    expect(await said(at(23))).not.toContain("deadline");
  });

  it("freezes a policy until a given time, and ends the freeze", async () => {
    const until = plus(dawn, hours(72));
    const act: BoardAct = { kind: "Freeze", policy: "spot", until };
    expect((await acts.preview(act)).command).toBe(
      `kubectl patch departurepolicy spot --type merge -p '{"spec":{"gates":{"freezeUntil":"2026-11-23T00:00:00Z"}}}'`,
    );
    expect(await perform(act)).toMatchObject({ kind: "Done" });
    expect(world.get(`${policies}/spot`)?.spec).toMatchObject({
      gates: { freezeUntil: "2026-11-23T00:00:00.000Z" },
      lifetime: { max: "24h" },
    });
    expect(await perform({ ...act, until: null })).toMatchObject({ kind: "Done" });
    expect(world.get(`${policies}/spot`)?.spec).not.toHaveProperty("gates.freezeUntil");
  });

  it("cancels a departure that a person requested, but not one that the cloud demands", async () => {
    await perform(depart("n1"));
    world.notice("n2", hours(1));
    await world.pass(hours(0));
    const [ours, clouds] = ["n1", "n2"].map((node) => world.departureOf(node)?.metadata);
    const withdraw = (meta: typeof ours): BoardAct => {
      return { kind: "Withdraw", departure: meta?.name ?? "", uid: meta?.uid ?? "" };
    };
    expect(await perform(withdraw(clouds))).toMatchObject({ kind: "Refused" });
    expect(await perform(withdraw(ours))).toMatchObject({ kind: "Done" });
    expect(writes.at(-1)).toBe(`DELETE ${departures}/${ours?.name}`);
  });

  it("passes on the API server's message if that rejects the act", async () => {
    refuse = ({ method }) => method === "PATCH";
    const answer = await perform(hold("n1"));
    expect(answer.kind).toBe("Refused");
    expect(answer.says).toContain("eve may not do that");
  });

  it("is rejected if there is no such hold, policy or departure", async () => {
    const release: BoardAct = { kind: "ReleaseHold", node: "n1", uid: uidOf("n1") };
    const freeze: BoardAct = { kind: "Freeze", policy: "none", until: plus(dawn, hours(1)) };
    const withdraw: BoardAct = { kind: "Withdraw", departure: "n1-x", uid: "no" };
    for (const act of [release, freeze, withdraw]) {
      expect((await perform(act)).kind).toBe("Refused");
    }
    expect(writes).toEqual([]);
  });

  it("is rejected for a time in the past, and for a node that does not exist", async () => {
    expect(await perform(hold("n1", instant(dawn - 1)))).toMatchObject({ kind: "Refused" });
    expect(await perform(depart("n1", instant(dawn - 1)))).toMatchObject({ kind: "Refused" });
    const yesterday = { ...depart("n1"), at: instant(dawn - 1) } as BoardAct;
    expect(await perform(yesterday)).toMatchObject({ kind: "Refused" });
    expect(await perform(depart("n9"))).toMatchObject({ kind: "Refused" });
    expect(writes).toEqual([]);
  });
});

describe("an act sent by a page", () => {
  it("is ignored unless each of its fields is valid", () => {
    const good = { kind: "Hold", node: "n1", uid: "u", until: null };
    expect(readAct(good)).toEqual(good);
    for (const bad of [
      ...[null, [], "Hold", {}, { ...good, node: "" }, { ...good, until: "now" }],
      ...[
        { ...good, until: 1e300 },
        { ...good, until: undefined },
        { ...good, kind: "Delete" },
      ],
    ]) {
      expect(readAct(bad)).toBeUndefined();
    }
    expect(readActRequest({ act: good, seen: "", key: "short" })).toBeUndefined();
    expect(readActRequest({ act: good, seen: "" })).toBeUndefined();
    expect(readActRequest({ act: good, seen: "", key: "long-enough" })?.act).toEqual(good);
  });
});
