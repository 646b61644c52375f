import { setTimeout as pause } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createNodes } from "../support/kwok-fleet.ts";
import type { LastcallProcess } from "../support/lastcall-process.ts";
import {
  directHook,
  healthEvent,
  launchAction,
  rebalance,
  spotWarning,
  stateChange,
  terminateAction,
  testNotification,
} from "../support/queue-body.ts";
import { controllerUser } from "./fleet-world.ts";
import { nameOf } from "./history.ts";
import { judgeNotices } from "./notice-judge.ts";
import { type QueueNode, QueueWorld } from "./queue-world.ts";

/** Half of the time that a Spot warning gives. */
const outageMs = 60_000;
const spotNodes = 15;
let world: QueueWorld;
let controller: LastcallProcess;
/** The nodes that got a notice, in that order. */
const noticed: QueueNode[] = [];

beforeAll(async () => {
  world = await QueueWorld.start(spotNodes);
  controller = await world.startController();
});

afterAll(() => world?.stop());

/** The next nodes without a notice. */
function nextNodes(count: number): readonly QueueNode[] {
  const chosen = world.nodes.filter((one) => !noticed.includes(one)).slice(0, count);
  expect(chosen).toHaveLength(count);
  noticed.push(...chosen);
  return chosen;
}

/** The time in whole seconds, as in EventBridge. */
function now(): string {
  return new Date().toISOString().replace(/\.\d+Z$/, "Z");
}

function warning({ instanceId }: QueueNode, id = `event-${instanceId}`): object {
  return spotWarning({ instanceId, time: now(), id });
}

async function areEmpty(nodes: readonly QueueNode[]): Promise<boolean> {
  const pods = await Promise.all(nodes.map((node) => world.podsOn(node)));
  return pods.every((some) => some.length === 0);
}

async function areCordoned(nodes: readonly QueueNode[]): Promise<boolean> {
  const cordoned = await world.cordoned();
  return nodes.every(({ name }) => cordoned.includes(name));
}

async function departuresOf({ name }: QueueNode) {
  return (await world.departures()).filter(({ spec }) => spec?.node?.name === name);
}

async function inQueue(): Promise<number> {
  const { shown, hidden } = await world.moto.count();
  return shown + hidden;
}

/** How many messages in the queue are for other clusters, and have to stay. */
let strangers = 0;

async function areOursGone(): Promise<boolean> {
  return (await inQueue()) === strangers;
}

describe("a Spot warning in the queue", () => {
  test("causes a cordon and a drain of its node, and is deleted", async () => {
    const nodes = nextNodes(1);
    const [node] = nodes as [QueueNode];
    const warned = warning(node) as { time: string };
    await world.moto.send(warned);
    await world.until("the node is cordoned", () => areCordoned(nodes));
    await world.until("its pods have left", () => areEmpty(nodes));
    await world.until("the queue is empty", areOursGone);
    const [departure, ...others] = await departuresOf(node);
    expect(others).toEqual([]);
    expect(departure?.spec).toMatchObject({
      cause: "SpotInterruption",
      deadlineAt: new Date(Date.parse(warned.time) + 120_000).toISOString(),
      source: `aws/queue/spot-interruption/event-${node.instanceId}`,
    });
  });

  test("creates one departure, even if it arrives fifty times", async () => {
    const nodes = nextNodes(1);
    const [node] = nodes as [QueueNode];
    await world.moto.send(...Array.from({ length: 50 }, () => warning(node)));
    await world.until("its pods have left", () => areEmpty(nodes));
    await world.until("the queue is empty", areOursGone);
    expect(await departuresOf(node)).toHaveLength(1);
    const labels = 'cloud="aws",kind="SpotInterruption",source="queue"';
    expect(await world.counted(`lastcall_notices_total{${labels}}`)).toBe(2);
  });

  test("takes effect although a recommendation that is ignored comes before it", async () => {
    const nodes = nextNodes(1);
    const [node] = nodes as [QueueNode];
    const { instanceId } = node;
    await world.moto.send(rebalance({ instanceId, time: now(), id: "r-1" }), warning(node));
    await world.until("its pods have left", () => areEmpty(nodes));
    const causes = (await departuresOf(node)).map(({ spec }) => (spec as { cause: string }).cause);
    expect(causes).toContain("SpotInterruption");
  });

  test("takes effect among garbage, test notifications and other clusters' machines", async () => {
    const nodes = nextNodes(4);
    const garbage = [
      "",
      "<html></html>",
      "[".repeat(5000),
      "x".repeat(200_000),
      '{"Message":"{}"}',
    ];
    const foreign = Array.from({ length: 10 }, (_, place) =>
      spotWarning({ instanceId: `i-0ffffffffffffff${place}0`, time: now(), id: `f-${place}` }),
    );
    const noise = [...garbage.filter((text) => text !== ""), ...foreign, testNotification()];
    await world.moto.send(...noise, ...nodes.map((node) => warning(node)), ...noise);
    await world.until("all are cordoned", () => areCordoned(nodes));
    await world.until("their pods have left", () => areEmpty(nodes));
    // Messages for others stay; the test notifications are gone.
    strangers = 2 * (noise.length - 1);
    await world.until("what is ours is gone from the queue", areOursGone);
    expect(await world.counted('lastcall_errors_total{code="INSTANCE_UNKNOWN"}')).toBeGreaterThan(
      19,
    );
    expect(await world.counted('lastcall_errors_total{code="NOTICE_UNREADABLE"}')).toBeGreaterThan(
      7,
    );
    expect(
      controller
        .log()
        .split("\n")
        .filter((line) => /feed-error/.test(line)).length,
    ).toBeLessThan(9);
  });
});

describe("a stopped machine", () => {
  test("has the pods of its node moved at once", async () => {
    const nodes = nextNodes(1);
    const [{ instanceId }] = nodes as [QueueNode];
    await world.moto.send(stateChange({ instanceId, time: now(), id: "s-1" }, "terminated"));
    await world.until("its pods have left", () => areEmpty(nodes));
  });
});

describe("a controller that is killed during a drain", () => {
  test("is succeeded by one that finishes the drain and handles newer messages", async () => {
    const first = nextNodes(1);
    await world.moto.send(...first.map((node) => warning(node)));
    await world.until("the node is cordoned", () => areCordoned(first));
    await controller.kill();
    const second = nextNodes(1);
    await world.moto.send(...second.map((node) => warning(node)));
    controller = await world.startController();
    await world.until("both nodes' pods have left", () => areEmpty([...first, ...second]));
    for (const node of [...first, ...second]) expect(await departuresOf(node)).toHaveLength(1);
  });
});

describe("an API server that is down for a minute when a notice arrives", () => {
  test("leaves it in the queue, and it is carried out before its deadline afterwards", async () => {
    const nodes = nextNodes(1);
    const [node] = nodes as [QueueNode];
    await world.until("what is ours is gone from the queue", areOursGone);
    await world.plane.stopApiServer();
    const warned = warning(node) as { time: string };
    const deadlineMs = Date.parse(warned.time) + 120_000;
    await world.moto.send(warned);
    await pause(outageMs);
    expect(await inQueue()).toBe(strangers + 1);
    expect(controller.death.aborted).toBe(false);
    await world.plane.startApiServer();
    await world.until("the node is cordoned", () => areCordoned(nodes), 10_000);
    await world.until("its pods have left", () => areEmpty(nodes));
    expect(Date.now()).toBeLessThan(deadlineMs);
    // The delay does not move the deadline.
    const [departure, ...others] = await departuresOf(node);
    expect(others).toEqual([]);
    expect(departure?.spec).toMatchObject({
      deadlineAt: new Date(deadlineMs).toISOString(),
      source: `aws/queue/spot-interruption/event-${node.instanceId}`,
    });
    await world.until("its message is gone", areOursGone);
    expect(controller.death.aborted).toBe(false);
  });
});

describe("an Auto Scaling group with a lifecycle hook", () => {
  const told: { readonly machine: string; readonly podsThen: Promise<number> }[] = [];

  beforeAll(() => {
    world.autoScaling.onTold = (machine) => {
      const node = world.nodes.find(({ instanceId }) => instanceId === machine);
      const pods = node === undefined ? Promise.resolve([]) : world.podsOn(node);
      told.push({ machine, podsThen: pods.then(({ length }) => length) });
    };
  });

  /** The message of a hook about the machine, which its group holds from now on. */
  function held(machine: string, saying: typeof terminateAction): object {
    const token = `token-${machine}`;
    world.autoScaling.hold({ group: "spot-asg", name: "drain", machine, token });
    return saying({ instanceId: machine, time: now(), token });
  }

  async function untilTold(machine: string): Promise<void> {
    const isTold = async () => told.some((one) => one.machine === machine);
    await world.until("the group is told to go on", isTold);
    await world.until("what is ours is gone from the queue", areOursGone);
    const [one, ...more] = told.filter((each) => each.machine === machine);
    expect(more).toEqual([]);
    expect(await one?.podsThen).toBe(0);
  }

  test("gets its termination hook completed once the node's pods have left", async () => {
    const [{ instanceId }] = nextNodes(1) as [QueueNode];
    await world.moto.send(held(instanceId, terminateAction));
    await untilTold(instanceId);
    const done = 'lastcall_actions_total{action="CompleteHook",result="Done"}';
    expect(await world.counted(done)).toBe(1);
  });

  test.each([
    ["killed", () => controller.kill()],
    ["asked to stop", () => controller.stop()],
  ] as const)(
    "gets the hook completed by the next controller if the first is %s during the drain",
    async (_, end) => {
      const nodes = nextNodes(1);
      const [{ instanceId }] = nodes as [QueueNode];
      await world.moto.send(held(instanceId, directHook));
      await world.until("the node is cordoned", () => areCordoned(nodes));
      await end();
      controller = await world.startController();
      await untilTold(instanceId);
    },
  );

  test("gets its launch hook completed once the new node has joined and is ready", async () => {
    const machine = "i-0aaaaaaaaaaaaaaaa";
    await world.moto.send(held(machine, launchAction));
    await world.until("the controller has the message", async () => {
      return (await world.moto.count()).hidden > 0;
    });
    expect(told.map((one) => one.machine)).not.toContain(machine);
    const providerID = `aws:///eu-west-1a/${machine}`;
    await createNodes(world.plane, [{ name: "joined", provisioning: "standard", providerID }]);
    await untilTold(machine);
  });
});

describe("the observed history", () => {
  test("shows no violation", () => {
    const charge = {
      noticed: noticed.map(({ name }) => name),
      spared: world.nodes.filter((one) => !noticed.includes(one)).map(({ name }) => name),
      user: controllerUser,
    };
    expect(charge.noticed).toHaveLength(14);
    expect(judgeNotices(world.history(), charge)).toEqual([]);
  });
});

describe("a Health event that is closed", () => {
  let node: QueueNode;
  /** The same for all messages: a closing that names a later time is ignored. */
  let startTime: string;
  beforeAll(() => {
    [node] = nextNodes(1) as [QueueNode];
    startTime = new Date(Date.now() + 5 * 60_000).toUTCString();
  });

  /** A retirement that starts in five minutes; `event` is the end of its ARN. */
  function health(event: string, statusCode: "upcoming" | "closed"): object {
    const eventArn = `arn:aws:health:eu-west-1::event/EC2/AWS_EC2_INSTANCE_RETIREMENT/${event}`;
    return healthEvent(
      { time: now(), id: `${event}-${statusCode}` },
      {
        entities: [{ entityValue: node.instanceId }],
        startTime,
        more: { eventArn, statusCode },
      },
    );
  }

  async function endOf(event: string): Promise<unknown> {
    const found = (await departuresOf(node)).filter(({ spec }) => {
      return (spec as { source: string }).source === `aws/queue/health/${event}`;
    });
    expect(found.length).toBeLessThan(2);
    return found[0]?.status?.phase === "Ended" && found[0].status;
  }

  const calledOff = { outcome: "Cancelled", reason: "NoticeWithdrawn" };

  test("cancels its departure and uncordons its node", async () => {
    await world.moto.send(health("retirement-1", "upcoming"));
    await world.until("the node is cordoned", () => areCordoned([node]));
    await world.moto.send(health("retirement-1", "closed"));
    const end = await world.until("its departure ends", () => endOf("retirement-1"));
    expect(end).toMatchObject(calledOff);
    expect(await areCordoned([node])).toBe(false);
    await world.until("both messages are gone", areOursGone);
  });

  test("does not cordon its node if the closing arrives first", async () => {
    // The end of the first departure is the last write about this node.
    const [first] = await departuresOf(node);
    const since = Number(first?.metadata?.resourceVersion);
    await world.moto.send(health("retirement-2", "closed"));
    const end = await world.until("its departure ends", () => endOf("retirement-2"));
    expect(end).toMatchObject(calledOff);
    await world.moto.send(health("retirement-2", "upcoming"));
    await world.until("both messages are gone", areOursGone);
    expect(await endOf("retirement-2")).toMatchObject(calledOff);
    const cordons = world.onlooker.changes().filter(({ kind, order, object }) => {
      const isLater = order > since && kind === "Node" && nameOf(object) === node.name;
      return isLater && object.spec?.unschedulable === true;
    });
    expect(cordons).toEqual([]);
  });
});

describe("a queue that belongs to one cluster", () => {
  test("is emptied of unknown messages with --sqs-unknown Delete", async () => {
    expect(await inQueue()).toBe(strangers);
    strangers = 0;
    await controller.stop();
    controller = await world.startController("--sqs-unknown", "Delete");
    await world.until("the queue is empty", areOursGone);
  });
});
