import { afterEach, describe, expect, it } from "vitest";
import type { NoticeDelivery } from "../../../src/contracts/cloud.ts";
import type { FleetChange, FleetView } from "../../../src/contracts/cluster.ts";
import { seededRng } from "../../../src/core/chance/chance.ts";
import type { NodeFacts } from "../../../src/core/cluster/node.ts";
import type { InstanceNotice } from "../../../src/core/notice/instance-notice.ts";
import { formatInstant, plus, seconds } from "../../../src/core/time/time.ts";
import { NodeEventFeed } from "../../../src/kube/node/node-event-feed.ts";
import { ModelWorld } from "../../support/model-world.ts";

const machine = "azure:///subscriptions/s/resourceGroups/g/virtualMachines/aks-1";
const events = "/api/v1/namespaces/default/events";

function nodeOf(providerID: string): NodeFacts {
  return { name: "n1", uid: "u1", providerID } as NodeFacts;
}

let stop = new AbortController();
afterEach(() => stop.abort());

/** A feed on the model, over a fleet of one node with this machine. */
function listen(providerID = machine, answer: () => NoticeDelivery = () => "Taken") {
  stop = new AbortController();
  const world = new ModelWorld();
  let nodes = [nodeOf(providerID)];
  const listeners = new Set<(change: FleetChange) => void>();
  const words: InstanceNotice[] = [];
  const troubles: string[] = [];
  const looks = { atAll: 0, atOne: 0 };
  const feed = new NodeEventFeed({
    ...{ api: world.api, clock: world.clock, rng: seededRng(1) },
    fleet: {
      view: () => {
        looks.atAll += 1;
        return { nodes, departures: [], policies: [], badPolicies: [] } satisfies FleetView;
      },
      node: (name) => {
        looks.atOne += 1;
        return nodes.find((one) => one.name === name);
      },
      onChange: (listener) => {
        listeners.add(listener);
        return () => listeners.delete(listener);
      },
    },
  });
  const listener = {
    onHook: async () => "LeftAlone" as const,
    onNotice: async (word: InstanceNotice) => {
      words.push(word);
      return answer();
    },
    onError: (error: Error) => void troubles.push(error.message),
  };
  const ended = feed.run(listener, stop.signal);
  const become = (id: string): void => {
    nodes = [nodeOf(id)];
    const change = { nodes: new Set(["n1"]), departures: new Set<string>(), policies: false };
    for (const changed of listeners) changed(change);
  };
  return { world, words, troubles, looks, ended, become };
}

function say(world: ModelWorld, reason: string, more: { message?: string; kind?: string } = {}) {
  const { kind = "Node", message = "a Preempt event is scheduled" } = more;
  const lastTimestamp = formatInstant(world.clock.now());
  return world.create(events, {
    apiVersion: "v1",
    kind: "Event",
    metadata: { name: `n1.${reason}.${world.clock.now()}`.toLowerCase(), namespace: "default" },
    involvedObject: { kind, name: "n1" },
    ...{ reason, message, lastTimestamp, type: "Warning" },
  });
}

describe("an Event about an AKS node", () => {
  it.each([
    ["PreemptScheduled", "SpotInterruption"],
    ["TerminateScheduled", "LifecycleHook"],
    ["RebootScheduled", "ScheduledMaintenance"],
    ["RedeployScheduled", "ScheduledMaintenance"],
  ])("with the reason %s is a notice for its machine: %s", async (reason, cause) => {
    const { world, words } = listen();
    await world.pass(seconds(1));
    say(world, reason);
    await world.pass(seconds(1));
    expect(words).toMatchObject([{ machine, notice: { cause, source: "azure/node-event" } }]);
  });

  it("of a preemption has the deadline that it names, or else the shortest that Azure gives", async () => {
    const { world, words } = listen();
    const at = world.clock.now();
    say(world, "PreemptScheduled");
    await world.pass(seconds(1));
    say(world, "PreemptScheduled", {
      message: "Preempt Scheduled: Fri, 20 Nov 2026 00:01:30 GMT. EventId: 0a1b2c3d-4e5f",
    });
    await world.pass(seconds(1));
    expect(words.map(({ notice }) => notice.deadlineAt)).toEqual([
      plus(at, seconds(30)),
      plus(at, seconds(90)),
    ]);
  });

  it("is delivered once, however often it is updated", async () => {
    const { world, words } = listen();
    const said = say(world, "PreemptScheduled");
    await world.pass(seconds(1));
    for (let count = 2; count < 6; count += 1) {
      const lastTimestamp = formatInstant(world.clock.now());
      const path = `${events}/${said.metadata?.name}`;
      const patchType = "application/merge-patch+json";
      world.api.handle({ method: "PATCH", path, patchType, body: { count, lastTimestamp } });
      await world.pass(seconds(2));
    }
    expect(words).toHaveLength(1);
  });

  it("is forgotten with its Event, so a long-running controller does not grow", async () => {
    const { world, words } = listen();
    for (let life = 1; life <= 2; life += 1) {
      const said = say(world, "PreemptScheduled");
      await world.pass(seconds(1));
      expect(words).toHaveLength(life);
      world.api.handle({ method: "DELETE", path: `${events}/${said.metadata?.name}` });
      await world.pass(seconds(1));
    }
  });

  it("is delivered again until it is taken", async () => {
    let fate: NoticeDelivery = "TooEarly";
    const { world, words } = listen(machine, () => fate);
    say(world, "RebootScheduled");
    await world.pass(seconds(3));
    expect(words.length).toBeGreaterThan(1);
    fate = "Taken";
    await world.pass(seconds(2));
    const taken = words.length;
    await world.pass(seconds(10));
    expect(words).toHaveLength(taken);
  });

  it("is no notice if it is about a freeze or a pod", async () => {
    const { world, words, troubles } = listen();
    say(world, "FreezeScheduled");
    say(world, "PreemptScheduled", { kind: "Pod" });
    await world.pass(seconds(1));
    expect({ words, troubles }).toEqual({ words: [], troubles: [] });
  });
});

describe("Events about nodes", () => {
  it("are not requested before the fleet has a node on Azure", async () => {
    const { world, words, become } = listen("gce://p/z/n1");
    let asked = 0;
    const { watch } = world.api;
    world.api.watch = (request) => {
      asked += 1;
      return watch.call(world.api, request);
    };
    say(world, "PreemptScheduled");
    await world.pass(seconds(10));
    expect({ asked, words }).toEqual({ asked: 0, words: [] });
    become(machine);
    await world.pass(seconds(1));
    expect(words).toHaveLength(1);
  });

  it("cost a read of the changed node only, not of the fleet, before Azure is seen", async () => {
    const { looks, become } = listen("gce://p/z/n1");
    for (let change = 0; change < 100; change += 1) become("gce://p/z/n1");
    expect(looks).toEqual({ atAll: 1, atOne: 100 });
  });

  it("are requested again each minute without the permission, and delivered once it is granted", async () => {
    const { world, words, troubles } = listen();
    const { send } = world.api;
    let refusals = 0;
    world.api.send = async (request) => {
      refusals += 1;
      const body = { kind: "Status", reason: "Forbidden", message: "events is forbidden" };
      return { ...(await send.call(world.api, request)), status: 403, body };
    };
    say(world, "PreemptScheduled");
    await world.pass(seconds(150));
    // Four reasons are watched, each requested at the start and after one and two minutes.
    expect(refusals).toBe(12);
    expect(troubles).toHaveLength(12);
    world.api.send = send;
    await world.pass(seconds(60));
    expect(words).toHaveLength(1);
  });

  it("are followed until the signal aborts, even before a node on Azure is seen", async () => {
    const { ended } = listen("gce://p/z/n1");
    stop.abort();
    await expect(ended).resolves.toBeUndefined();
  });
});
