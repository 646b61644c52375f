import { describe, expect, it } from "vitest";
import type { NodeFacts } from "../../../src/core/cluster/node.ts";
import type { DepartureStatus } from "../../../src/core/departure/departure.ts";
import { statusNoticed } from "../../../src/core/departure/ledger.ts";
import { freshMemory, type Memory } from "../../../src/core/next/memory.ts";
import { next } from "../../../src/core/next/next.ts";
import type { RequestFault } from "../../../src/core/next/scene.ts";
import { aDeparture, aNode, aPolicy } from "../fleet-builder.ts";
import {
  aScene,
  at,
  failed,
  known,
  marked,
  policy,
  statusIn,
  theNode,
  timeAt,
  unanswered,
} from "./departure-scene.ts";

const start: Memory = {
  ...freshMemory(timeAt(0, 1)),
  ...{ markedFor: "Planned undefined undefined", cordonedMs: -60_000 },
};

/** What one leader sees of a release; `deafMs`: how long the API server answers nothing. */
interface Term {
  readonly fromMs: number;
  readonly toMs: number;
  readonly fault?: RequestFault;
  readonly deafMs?: number;
}

const nameless = { ...theNode, providerID: undefined };
const releasing = statusIn(["Preparing", "Draining", "Releasing"]);

describe("a departure whose machine nothing identifies", () => {
  it("is not released without its Node: that is gone, and nobody knows why", () => {
    const facts = { nodeNow: known({ node: undefined }, 9) };
    const departure = { node: nameless, status: releasing };
    const { status, requests } = next(
      aScene({ departure, node: undefined, facts }),
      start,
      timeAt(200, 2),
    );
    expect(status).toMatchObject({ phase: "Ended", reason: "NodeGone" });
    expect(requests).toEqual([]);
  });

  it("does not delete the Node of a machine that may run: it is given back", () => {
    const fault = { code: "NOT_FOUND", message: "it has no providerID" };
    const node = { ...marked(), providerID: undefined };
    const departure = { node: nameless, status: releasing };
    const facts = { machine: failed(fault) };
    const { status, requests } = next(aScene({ departure, node, facts }), start, timeAt(200, 2));
    expect(status).toMatchObject({ phase: "RollingBack", reason: "ReleaseFailed" });
    expect(requests).toEqual([]);
  });
});

describe("a departure that was chosen, and whose notice did not come true", () => {
  const noticed = { cause: "Manual", noticedAt: at(0), status: releasing } as const;
  const machine = { id: "id-1", mode: "Recreate" } as const;
  const departure = { ...noticed, status: { ...releasing, machine } };
  const hourMs = 3_600_000;

  it.each([
    ["its node still runs", marked()],
    ["its kubelet is silent", { ...marked(), ready: false }],
  ])("is released after an hour, as it was to be: %s", (_, node) => {
    const scene = aScene({ departure, node });
    const phase = { ms: hourMs - 1, number: 1 };
    const memory = { ...start, markedFor: undefined, phase };
    const early = next(scene, memory, timeAt(hourMs - 1, 2));
    expect(early.requests).toEqual([]);
    expect(early.lookAgainAt).toBe(at(hourMs));
    const { requests } = next(scene, early.memory, timeAt(hourMs, 3));
    expect(requests.map(({ kind }) => kind)).toEqual(["Release"]);
  });

  const none = aPolicy({ instance: { ...aPolicy().instance, release: "None" } });
  const told = statusNoticed(aDeparture(theNode, noticed), at(0)) ?? releasing;
  const awaited = aScene({
    ...{ departure: { ...noticed, status: told }, node: marked(), policy: none },
  });

  it.each([
    ["a read shows that it runs", { nodeNow: known({ node: marked() }, 2) }],
    ["it may not be read", { nodeNow: failed() }],
  ])("is given back if the policy leaves the release to others, and %s", (_, facts) => {
    expect(next({ ...awaited, facts }, start, timeAt(hourMs, 2)).status).toMatchObject({
      ...{ phase: "RollingBack", reason: "NoticeOutlived" },
    });
  });

  it.each([
    ["before the Node is read", {}],
    ["while the API server is away", { nodeNow: failed({ retryable: true }) }],
    [
      "if its kubelet is silent by now",
      { nodeNow: known({ node: { ...marked(), ready: false } }, 2) },
    ],
  ])("does not count as outlived by what a watch shows: %s", (_, facts) => {
    const { status, needs, lookAgainAt } = next({ ...awaited, facts }, start, timeAt(hourMs, 2));
    expect(status.phase).toBe("Releasing");
    expect(needs).toContainEqual({ name: "nodeNow", since: 2 });
    expect(lookAgainAt).toBe(at(hourMs + 20_000));
  });

  it("waits for a read that takes long, and does not ask for a newer one meanwhile", () => {
    const asked = next(awaited, start, timeAt(hourMs, 2));
    const later = next(awaited, asked.memory, timeAt(hourMs + 25_000, 9));
    expect(later.needs).toContainEqual({ name: "nodeNow", since: 2 });
    expect(later.lookAgainAt).toBeUndefined();
    const facts = { nodeNow: known({ node: marked() }, 2) };
    const { status } = next({ ...awaited, facts }, later.memory, timeAt(hourMs + 26_000, 10));
    expect(status.reason).toBe("NoticeOutlived");
  });

  it.each([
    [
      "another machine",
      { ...theNode, providerID: "gce://p/z/other", bootID: "b9" },
      "MachineReplaced",
    ],
    ["nothing", undefined, "NodeGone"],
  ])("ends as gone if a read shows %s under its name", (_, node, reason) => {
    const facts = { nodeNow: known({ node }, 2), machineBehind: known("NobodyToAsk" as const, 9) };
    const { status } = next({ ...awaited, facts }, start, timeAt(hourMs, 2));
    expect(status).toMatchObject({ reason });
    expect(["RollingBack", "Ended"]).toContain(status.phase);
  });
});

it("a machine is recorded with its providerID, which the Departure may not name", () => {
  const departure = { node: nameless, status: releasing };
  const state = { kind: "Present", id: "id-1", bornAt: undefined, running: true } as const;
  const facts = { machine: known(state, 9) };
  const { status } = next(aScene({ departure, node: marked(), facts }), start, timeAt(200, 2));
  const { providerID } = aNode("n1");
  expect(status.machine).toEqual({ id: "id-1", mode: "Recreate", providerID });
});

describe("the machine under the name of a departure's Node", () => {
  const recorded = (bornMs: number, nodeMs: number, node: NodeFacts) => {
    const status = { ...releasing, nodeCreatedAt: at(nodeMs) };
    const its = { id: "id-1", bornAt: at(bornMs), asOf: at(200_000), running: true };
    const facts = { machine: known({ kind: "Present", ...its } as const, 9) };
    const all = { ...facts, nodeNow: known({ node }, 9) };
    const scene = aScene({ departure: { status }, node, facts: all });
    return next(scene, start, timeAt(200_000, 2)).status.machine?.id;
  };

  it("is its own if it is older than the Node, though younger than the start by a slow clock", () => {
    expect(recorded(30_000, 60_000, marked())).toBe("id-1");
  });

  it("is another one if it is younger than both, whatever Node has that name now", () => {
    const another = { ...theNode, uid: "uid-n1-2", createdAt: at(110_000) };
    expect(recorded(90_000, -60_000, another)).toBeUndefined();
  });
});

it("a new leader releases the machine that is recorded, although its Node is gone", () => {
  const machine = { id: "id-1", mode: "Recreate", providerID: "gce://p/z/n1" } as const;
  const departure = { node: nameless, status: { ...releasing, machine } };
  const { requests } = next(aScene({ departure, node: undefined }), start, timeAt(200, 2));
  const { id: machineId, providerID } = machine;
  expect(requests).toMatchObject([{ kind: "Release", machineId, providerID }]);
});

describe("a release that gets no answer", () => {
  const machine = { id: "id-1", mode: "Recreate" } as const;
  const running = { kind: "Present", id: "id-1", bornAt: undefined, running: true } as const;
  const { awaitMachineMs } = policy.instance;
  const cloud = { code: "CLOUD_UNREACHABLE", message: "no response", retryable: true };

  /** One leader tries from `fromMs` on, to `toMs`; returns the status as it has written it. */
  function tried(before: DepartureStatus, { fromMs, toMs, fault = cloud, deafMs = 0 }: Term) {
    const againMs = 1e12;
    const asked = { "release id-1": unanswered("Release", { fault, againMs }) };
    const phase = { ms: fromMs, number: 1 };
    let memory: Memory = { ...start, phase, unansweredMs: 0, asked };
    let [status, ms, number] = [before, fromMs, 1];
    while (ms <= toMs) {
      number += 1;
      const facts = { machine: known(running, 99) };
      const heardMs = ms < fromMs + deafMs ? fromMs : ms;
      const scene = aScene({ departure: { status }, node: marked(), facts, heardMs });
      const out = next(scene, memory, timeAt(ms, number));
      status = out.status;
      if (status.phase !== "Releasing") break;
      memory = { ...out.memory, intended: undefined };
      ms = (out.lookAgainAt ?? at(toMs + 1)) - at(0);
    }
    return { status, ms };
  }

  const begun = { ...releasing, machine };

  it("is tried for instance.awaitMachine by all leaders together", () => {
    let status: DepartureStatus = begun;
    const eachMs = awaitMachineMs / 4;
    for (let leader = 0; leader < 4; leader += 1) {
      // An hour without a leader is between them, and does not count.
      const fromMs = leader * (eachMs + 3_600_000);
      expect(status).toMatchObject({ phase: "Releasing" });
      ({ status } = tried(status, { fromMs, toMs: fromMs + eachMs }));
    }
    expect(status.releasingSeconds).toBeGreaterThanOrEqual((awaitMachineMs / 1000) * 0.9);
    const last = 4 * (eachMs + 3_600_000);
    const { status: after, ms } = tried(status, { fromMs: last, toMs: last + awaitMachineMs });
    expect(after).toMatchObject({ phase: "RollingBack", reason: "ReleaseFailed" });
    expect(ms - last).toBeLessThanOrEqual(eachMs);
  });

  it("does not count the time in which the API server was away", () => {
    const toMs = 2 * awaitMachineMs;
    const { status } = tried(begun, { fromMs: 0, toMs, deafMs: 1.5 * awaitMachineMs });
    expect(status.phase).toBe("Releasing");
  });

  it("is given up for an API server that refuses its last look, by the same time", () => {
    const fault = { code: "API_REFUSED", message: "500: no pods", retryable: true };
    const toMs = awaitMachineMs - 1000;
    expect(tried(begun, { fromMs: 0, toMs, fault }).status.phase).toBe("Releasing");
    const { status } = tried(begun, { fromMs: 0, toMs: awaitMachineMs, fault });
    expect(status).toMatchObject({ phase: "RollingBack", reason: "ReleaseFailed" });
  });

  const absent = { kind: "Absent" } as const;

  it.each([
    { cloud: "has none of its name", seen: absent, node: undefined, asks: ["RemoveNode"] },
    {
      cloud: "has another one",
      seen: { ...running, id: "2" },
      node: undefined,
      asks: ["RemoveNode"],
    },
    { cloud: "has none, as from a wrong account", seen: absent, node: marked(), asks: [] },
  ])("has ended its machine if its cloud $cloud, unless the kubelet reports", (one) => {
    const { seen, node, asks } = one;
    const facts = { machine: known(seen, 99), nodeNow: known({ node }, 99) };
    const status = { ...begun, releasingSeconds: awaitMachineMs / 1000 };
    const scene = aScene({ departure: { status }, node: marked(), facts });
    const asked = { "release id-1": unanswered("Release", { fault: cloud, againMs: 1e12 }) };
    const out = next(scene, { ...start, unansweredMs: 0, asked }, timeAt(1000, 2));
    expect(out.status.phase).toBe("Releasing");
    expect(out.requests.map(({ kind }) => kind)).toEqual(asks);
  });
});

describe("a release that is refused by a cloud that shows nothing of its machine either", () => {
  const machine = { id: "id-1", mode: "Recreate" } as const;
  const { awaitMachineMs } = policy.instance;
  const fault = { code: "CLOUD_CREDENTIALS", message: "401", retryable: false };
  const silent = { ...marked(), ready: false };
  const departure = { status: { ...releasing, machine }, createdAt: at(-60_000) };
  const facts = (node: NodeFacts | undefined) => ({
    ...{ machine: failed(fault), machineBehind: failed(fault) },
    nodeNow: known({ node }, 1e6),
  });

  /** Evaluates from the refusal on, at each time that is asked for; nothing else happens. */
  function waited(node: NodeFacts | undefined, toMs: number) {
    const asked = { "release id-1": unanswered("Release", { fault, againMs: 1e12 }) };
    let memory: Memory = { ...start, asked, described: 1 };
    let sent = 0;
    for (let [ms, number] = [0, 2]; ms <= toMs; number += 1) {
      const scene = aScene({ departure, node, facts: facts(node), heardMs: ms });
      const out = next(scene, memory, timeAt(ms, number));
      sent += out.requests.filter(({ kind }) => kind === "Release").length;
      if (out.status.phase !== "Releasing") return { ms, sent, ...out.status };
      memory = { ...out.memory, intended: undefined };
      ms = Math.max(ms + 1, (out.lookAgainAt ?? at(toMs + 1)) - at(0));
    }
    return { ms: toMs, sent, phase: "Releasing", message: undefined };
  }

  it("gives the node back once its kubelet has reported for longer than a machine takes to stop", () => {
    const { ms, ...end } = waited(marked(), 10 * awaitMachineMs);
    expect(end).toMatchObject({ phase: "RollingBack", reason: "ReleaseFailed", sent: 0 });
    expect(end.message).toContain("401");
    expect(ms).toBeGreaterThanOrEqual(awaitMachineMs);
    expect(ms).toBeLessThan(awaitMachineMs + 120_000);
  });

  it.each([
    ["its Node is gone", undefined],
    ["another machine has its name", { ...theNode, uid: "uid-other" }],
  ])("is over after that time if %s", (_, node) => {
    expect(waited(node, 2 * awaitMachineMs)).toMatchObject({ reason: "ReleaseFailed", sent: 0 });
  });

  it("keeps the node of a silent kubelet: the request may have ended its machine", () => {
    expect(waited(silent, 10 * awaitMachineMs).phase).toBe("Releasing");
  });
});

describe("a release whose last look has found pods, while the budgets may not be listed", () => {
  const machine = { id: "id-1", mode: "Recreate" } as const;
  const { awaitMachineMs } = policy.instance;
  const facts = { pods: known([]), budgets: failed() };
  const scene = aScene({ departure: { status: { ...releasing, machine } }, node: marked(), facts });
  const late = { ...start, late: ["uid-late"], lateSinceAt: at(0), target: marked() };

  it("is given up in the server's words, since nothing was requested", () => {
    const early = next(scene, late, timeAt(awaitMachineMs - 1, 2));
    expect(early.status.phase).toBe("Releasing");
    const { status } = next(scene, early.memory, timeAt(awaitMachineMs, 3));
    expect(status).toMatchObject({ phase: "RollingBack", reason: "RequestRefused" });
    expect(status.message).toContain("403: no");
  });

  it("goes on if a request may have been accepted before", () => {
    const memory = { ...late, unansweredMs: 0 };
    expect(next(scene, memory, timeAt(2 * awaitMachineMs, 2)).status.phase).toBe("Releasing");
  });
});

it("a machine that is gone is released, although its Node may not be deleted", () => {
  const machine = { id: "id-1", mode: "Recreate" } as const;
  const departure = { status: { ...releasing, machine } };
  const scene = aScene({ departure, node: marked() });
  const fault = { code: "API_REFUSED", message: "403: the webhook denied it", retryable: false };
  const againMs = 7_200_000;
  const asked = { "remove node": unanswered("RemoveNode", { fault, againMs }) };
  const { awaitMachineMs } = policy.instance;
  const early = next(scene, { ...start, releasedNumber: 1, asked }, timeAt(1000, 2));
  expect(early.status).toMatchObject({ phase: "Releasing", reason: "ReleaseRetried" });
  expect(early.lookAgainAt).toBe(at(awaitMachineMs));
  expect(next(scene, early.memory, timeAt(awaitMachineMs, 3)).status).toMatchObject({
    ...{ phase: "Ended", reason: "Released", outcome: "Planned" },
    message: expect.stringContaining("the webhook denied it"),
  });
  // By all leaders together as well, each of which tries anew.
  const late = { ...departure.status, releasingSeconds: (2 * awaitMachineMs) / 1000 };
  const last = aScene({ departure: { status: late }, node: marked() });
  expect(next(last, { ...start, releasedNumber: 1, asked }, timeAt(1000, 2)).status).toMatchObject({
    ...{ phase: "Ended", reason: "Released" },
  });
  // An API server that is away refuses nothing.
  const away = unanswered("RemoveNode", { againMs });
  const memory = { ...start, releasedNumber: 1, asked: { "remove node": away } };
  expect(next(scene, memory, timeAt(awaitMachineMs, 3)).status.phase).toBe("Releasing");
});
