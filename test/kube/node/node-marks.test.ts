import { beforeEach, describe, expect, it } from "vitest";
import type { KubeSender } from "../../../src/contracts/kube-api.ts";
import { seconds } from "../../../src/core/time/time.ts";
import { type LastcallError, messageOf } from "../../../src/errors.ts";
import { KubeNodeMarks } from "../../../src/kube/node/node-marks.ts";
import { ModelWorld, nodes } from "../../support/model-world.ts";

const unserved = {
  kind: "Status",
  code: 404,
  message: "the server could not find the requested resource",
};
const mark = { departure: "n1-12345678", cause: "Planned", message: "It leaves." } as const;

describe("the marks on a departing node", () => {
  let world: ModelWorld;
  let marks: KubeNodeMarks;

  beforeEach(() => {
    world = new ModelWorld();
    world.addNode("n1", "a");
    marks = new KubeNodeMarks({ api: world.watched, clock: world.clock });
  });

  async function identity() {
    const found = await marks.read("n1");
    if (found === undefined) throw new Error("the node is missing");
    const { name, uid, providerID, bootID } = found;
    return { name, uid, providerID, bootID };
  }

  it("are cordon, taint, annotation and load-balancer label, written in one patch", async () => {
    const who = await identity();
    expect(await marks.cordon(who, mark)).toEqual({ kind: "Done" });
    const patches = world.writes.filter((write) => write === `PATCH ${nodes}/n1`);
    expect(patches).toHaveLength(1);
    const node = world.get(`${nodes}/n1`);
    expect(node?.spec).toMatchObject({ unschedulable: true });
    const spec = node?.spec as { taints: unknown[] } | undefined;
    expect(spec?.taints).toContainEqual({
      key: "lastcall.dev/departing",
      value: "Planned",
      effect: "NoSchedule",
    });
    expect(node?.metadata?.annotations?.["lastcall.dev/departure"]).toBe("n1-12345678");
    expect(
      node?.metadata?.labels?.["node.kubernetes.io/exclude-from-external-load-balancers"],
    ).toBe("lastcall");
  });

  it.each([
    ["are sent twice, and not more often, if they are refused like a failed test", 0, 2],
    ["are sent once, if that took long", 9, 1],
  ])("%s", async (_, tookSeconds, most) => {
    const seen = await marks.read("n1");
    const send = world.watched.send.bind(world.watched);
    let sent = 0;
    world.watched.send = async (request) => {
      if (request.method !== "PATCH") return send(request);
      sent += 1;
      await world.clock.sleep(seconds(tookSeconds));
      const body = { kind: "Status", code: 422, reason: "Invalid", message: "denied by a policy" };
      return { status: 422, body };
    };
    const asked = { ...mark, seen, validMs: seconds(5) };
    const refused = marks.cordon(await identity(), asked).catch(messageOf);
    await world.pass(seconds(30));
    expect(await refused).toContain("denied by a policy");
    expect(sent).toBe(most);
  });

  it("are sent once by each further attempt at a node that is refused like a failed test", async () => {
    const who = await identity();
    const seen = await marks.read("n1");
    const send = world.watched.send.bind(world.watched);
    let sent = 0;
    let refuses = true;
    world.watched.send = async (request) => {
      if (request.method !== "PATCH" || !refuses) return send(request);
      sent += 1;
      const body = { kind: "Status", code: 409, reason: "Conflict", message: "denied by a policy" };
      return { status: 409, body };
    };
    const attempts = {
      cordon: () => marks.cordon(who, { ...mark, seen }),
      mark: () => marks.markSoon(who, "Soon"),
    };
    const patches: number[] = [];
    for (const attempt of ["cordon", "cordon", "cordon", "mark", "mark"] as const) {
      sent = 0;
      await expect(attempts[attempt]()).rejects.toThrow("denied by a policy");
      patches.push(sent);
    }
    expect(patches).toEqual([2, 1, 1, 1, 1]);
    // Somebody else has written: the next refusal may be a conflict again.
    world.patchNode("n1", { metadata: { labels: { other: "tool" } } });
    sent = 0;
    await expect(attempts.mark()).rejects.toThrow("denied by a policy");
    expect(sent).toBe(2);
    refuses = false;
    expect(await attempts.cordon()).toEqual({ kind: "Done" });
  });

  it.each([
    ["asked for again, once what allowed them was asked long ago", seconds(3), undefined],
    ["written again, while what allowed them holds", seconds(5), "n1-12345678"],
    ["written again, under a notice", undefined, "n1-12345678"],
  ])("whose patch was overtaken are %s", async (_, validMs, departure) => {
    const [who, seen] = [await identity(), await marks.read("n1")];
    world.patchNode("n1", { spec: { taints: [{ key: "others", effect: "NoSchedule" }] } });
    const send = world.watched.send.bind(world.watched);
    world.watched.send = async (request) => {
      if (request.method === "PATCH") await world.clock.sleep(seconds(4));
      return send(request);
    };
    const cordoned = marks
      .cordon(who, { ...mark, seen, validMs })
      .catch(({ code, retryable }: LastcallError) => ({ code, retryable }));
    await world.pass(seconds(20));
    const lapsed = { code: "CONFLICT", retryable: true };
    expect(await cordoned).toEqual(departure === undefined ? lapsed : { kind: "Done" });
    const { metadata } = world.get(`${nodes}/n1`) ?? {};
    expect(metadata?.annotations?.["lastcall.dev/departure"]).toBe(departure);
  });

  it("of a node that leaves soon are a soft taint, which is not written twice", async () => {
    const who = await identity();
    const taints = () =>
      (world.get(`${nodes}/n1`)?.spec as { taints?: object[] } | undefined)?.taints;
    const patches = () => world.writes.filter((write) => write === `PATCH ${nodes}/n1`).length;
    for (const [to, written] of [
      ["Soon", 1],
      ["Soon", 1],
      ["NotSoon", 2],
      ["NotSoon", 2],
    ] as const) {
      expect(await marks.markSoon(who, to)).toEqual({ kind: "Done" });
      expect(patches()).toBe(written);
      const taint = { key: "lastcall.dev/departing-soon", effect: "PreferNoSchedule" };
      expect(taints()).toEqual(to === "Soon" ? [taint] : undefined);
    }
  });

  it("of a node that leaves soon are not written on a departing node or another machine", async () => {
    const who = await identity();
    const other = await marks.markSoon({ ...who, bootID: "another" }, "Soon");
    expect(other).toMatchObject({ kind: "Mismatch" });
    expect(await marks.markSoon({ ...who, uid: "another" }, "Soon")).toEqual({ kind: "Gone" });
    await marks.cordon(who, mark);
    const before = world.writes.length;
    const departing = { kind: "NotOurs", departure: mark.departure };
    expect(await marks.markSoon(who, "Soon")).toEqual(departing);
    expect(world.writes).toHaveLength(before);
  });

  it("include the condition Departing with its message", async () => {
    await marks.cordon(await identity(), mark);
    const status = world.get(`${nodes}/n1`)?.status as { conditions: unknown[] } | undefined;
    expect(status?.conditions).toContainEqual(
      expect.objectContaining({ type: "Departing", status: "True", message: "It leaves." }),
    );
  });

  it("are renewed where they exist, and not added where they do not", async () => {
    const who = await identity();
    const again = { ...mark, cause: "SpotInterruption", message: "Soon.", renews: true } as const;
    expect(await marks.cordon(who, again)).toEqual({ kind: "Gone" });
    expect(world.marksOf("n1")).toEqual([]);
    await marks.cordon(who, mark);
    expect(await marks.cordon(who, again)).toEqual({ kind: "Done" });
    const { spec, status } = world.get(`${nodes}/n1`) ?? {};
    const departing = { key: "lastcall.dev/departing", value: "SpotInterruption" };
    const taint = expect.objectContaining(departing);
    expect(spec).toMatchObject({ taints: expect.arrayContaining([taint]) });
    const told = { type: "Departing", reason: "SpotInterruption", message: "Soon." };
    expect(status).toMatchObject({ conditions: [{ type: "Ready" }, told] });
    await marks.uncordon({ name: who.name, uid: who.uid, departure: mark.departure });
    expect(world.marksOf("n1")).toEqual([]);
  });

  it("include the condition even if its first writes fail", async () => {
    let failures = 3;
    const api: KubeSender = {
      send: (request) => {
        if (!request.path.endsWith("/status") || failures === 0) return world.api.send(request);
        failures -= 1;
        return failures === 1
          ? Promise.reject(new Error("connection lost"))
          : Promise.resolve({ status: 503, body: {} });
      },
    };
    await new KubeNodeMarks({ api, clock: world.clock }).cordon(await identity(), mark);
    await world.pass(seconds(5));
    expect(failures).toBe(0);
    const status = world.get(`${nodes}/n1`)?.status as { conditions: unknown[] } | undefined;
    expect(status?.conditions).toContainEqual(
      expect.objectContaining({ type: "Departing", status: "True" }),
    );
  });

  it("are removed at once, even if the condition cannot be written", async () => {
    const statuses: string[] = [];
    let isAway = true;
    const api: KubeSender = {
      send: (request) => {
        if (!request.path.endsWith("/status")) return world.api.send(request);
        const { status } = request.body as { status: { conditions: { status: string }[] } };
        statuses.push(status.conditions[0]?.status ?? "");
        return isAway ? Promise.resolve({ status: 503, body: {} }) : world.api.send(request);
      },
    };
    const failing = new KubeNodeMarks({ api, clock: world.clock });
    const who = await identity();
    await failing.cordon(who, mark);
    await failing.uncordon({ name: "n1", uid: who.uid, departure: mark.departure });
    expect(world.marksOf("n1")).toEqual([]);
    isAway = false;
    await world.pass(seconds(5));
    // An outdated condition is not written any more.
    expect(statuses).toEqual(["True", "False"]);
  });

  it("put no condition on another Node that has got the name meanwhile", async () => {
    let isAway = true;
    const api: KubeSender = {
      send: (request) =>
        isAway && request.path.endsWith("/status")
          ? Promise.resolve({ status: 503, body: {} })
          : world.api.send(request),
    };
    await new KubeNodeMarks({ api, clock: world.clock }).cordon(await identity(), mark);
    world.api.handle({ method: "DELETE", path: `${nodes}/n1` });
    world.addNode("n1", "a");
    isAway = false;
    await world.pass(seconds(5));
    const status = world.get(`${nodes}/n1`)?.status as { conditions: unknown[] };
    expect(status.conditions).not.toContainEqual(expect.objectContaining({ type: "Departing" }));
  });

  it("leave no trace when they are removed", async () => {
    const who = await identity();
    const before = world.get(`${nodes}/n1`);
    await marks.cordon(who, mark);
    await marks.uncordon({ name: "n1", uid: who.uid, departure: mark.departure });
    const after = world.get(`${nodes}/n1`);
    expect(after?.metadata?.labels).toEqual(before?.metadata?.labels);
    expect(after?.metadata?.annotations ?? {}).toEqual(before?.metadata?.annotations ?? {});
    expect(world.marksOf("n1")).toEqual([]);
  });

  it("leave somebody else's cordon in place when they are removed", async () => {
    world.patchNode("n1", { spec: { unschedulable: true } });
    const who = await identity();
    await marks.cordon(who, mark);
    await marks.uncordon({ name: "n1", uid: who.uid, departure: mark.departure });
    expect(world.get(`${nodes}/n1`)?.spec).toMatchObject({ unschedulable: true });
  });

  it("leave somebody else's load-balancer label alone", async () => {
    const label = "node.kubernetes.io/exclude-from-external-load-balancers";
    world.patchNode("n1", { metadata: { labels: { [label]: "mine" } } });
    const who = await identity();
    await marks.cordon(who, mark);
    await marks.uncordon({ name: "n1", uid: who.uid, departure: mark.departure });
    expect(world.get(`${nodes}/n1`)?.metadata?.labels?.[label]).toBe("mine");
  });

  it("lose no taint that somebody else adds meanwhile", async () => {
    const who = await identity();
    let put = false;
    world.beforeWrite = () => {
      if (put) return;
      put = true;
      const taints = [{ key: "theirs", effect: "NoSchedule" }];
      world.patchNode("n1", { spec: { taints } });
    };
    await marks.cordon(who, mark);
    expect(world.marksOf("n1")).toEqual(
      expect.arrayContaining(["theirs", "lastcall.dev/departing"]),
    );
  });

  it.each([
    ["uid", { uid: "another" }, { kind: "Gone" }],
    ["providerID", { providerID: "gce://demo/a/n2" }, { kind: "Mismatch", found: "OtherMachine" }],
    ["bootID", { bootID: "boot-0" }, { kind: "Mismatch", found: "Rebooted" }],
  ])("are not written if the %s differs", async (_, other, result) => {
    const who = { ...(await identity()), ...other };
    expect(await marks.cordon(who, mark)).toEqual(result);
    expect(world.writes).toEqual([]);
  });

  it("do not take an unexpected response for a node that is gone", async () => {
    const who = await identity();
    const page = { kind: "Status", metadata: {}, status: "Success" };
    const api: KubeSender = {
      send: (request) =>
        request.method === "GET"
          ? Promise.resolve({ status: 200, body: page })
          : world.watched.send(request),
    };
    const unsure = new KubeNodeMarks({ api, clock: world.clock });
    const fault = { code: "API_ANSWER_INVALID", message: expect.stringContaining("found Status") };
    await expect(unsure.read("n1")).rejects.toMatchObject(fault);
    await expect(unsure.cordon(who, mark)).rejects.toMatchObject(fault);
  });

  it.each([
    ["page not found", "404 page not found\n"],
    ["a Status about the path", unserved],
  ])(
    "do not take a 404 from in front of the API server for a node that is gone: %s",
    async (_, body) => {
      const who = await identity();
      const seen = await marks.read("n1");
      const answering = (method: string) => {
        const send: KubeSender["send"] = (request) =>
          request.method === method
            ? Promise.resolve({ status: 404, body })
            : world.watched.send(request);
        return new KubeNodeMarks({ api: { send }, clock: world.clock });
      };
      const fault = { code: "API_ANSWER_INVALID", retryable: true };
      await expect(answering("GET").read("n1")).rejects.toMatchObject(fault);
      await expect(answering("PATCH").cordon(who, mark)).rejects.toMatchObject(fault);
      await expect(answering("PATCH").cordon(who, { ...mark, seen })).rejects.toMatchObject(fault);
      await expect(answering("DELETE").remove(who)).rejects.toMatchObject(fault);
    },
  );

  it("of another departure are left alone", async () => {
    const who = await identity();
    await marks.cordon(who, mark);
    expect(await marks.cordon(who, { ...mark, departure: "other" })).toMatchObject({
      kind: "NotOurs",
    });
    const target = { name: "n1", uid: who.uid, departure: "other" };
    expect(await marks.uncordon(target)).toMatchObject({ kind: "NotOurs" });
  });

  it("are not needed to protect a machine of the same name: its Node is not removed", async () => {
    const who = { ...(await identity()), bootID: "boot-0" };
    expect(await marks.remove(who)).toEqual({ kind: "Mismatch", found: "Rebooted" });
    expect(world.get(`${nodes}/n1`)).toBeDefined();
  });
});
