import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  GroupBatches,
  type Registered,
  type Target,
  type TrafficGroups,
} from "../../src/cloud/aws/actions/traffic-groups.ts";
import { millis } from "../../src/core/time/time.ts";
import { realClock } from "../../src/runtime/real-clock.ts";

/** Groups of one kind, and control over them. */
export interface TrafficWorld {
  readonly groups: TrafficGroups;
  /**
   * Adds a group with these instances whose connections drain for this long, and returns its id.
   */
  add(name: string, instances: readonly string[], drainMs?: number): string;
  /** The instances that receive traffic. */
  serving(id: string): readonly string[];
  /** From now on EC2 does not know the instance. */
  terminate(instance: string): void;
  /** From now on, lists are missing from the responses, or are empty. */
  omit(what: "NoList" | "Empty"): void;
  pass(spanMs: number): void;
  /** Until `heal`, every request fails with this fault. */
  fail(fault: "Unreachable" | "RateLimited" | "RightMissing"): void;
  heal(): void;
  close(): Promise<void>;
}

const never = new AbortController().signal;
const one = "i-00000000000000001";
const two = "i-00000000000000002";
const three = "i-00000000000000003";

const noTrouble = {
  onError: (_: unknown, error: unknown): never => {
    throw error;
  },
};

/** What every implementation of `TrafficGroups` guarantees. */
export function trafficGroupsContract(name: string, makeWorld: () => Promise<TrafficWorld>): void {
  describe(`${name} as TrafficGroups`, () => {
    let world: TrafficWorld;

    beforeEach(async () => {
      world = await makeWorld();
    });
    afterEach(() => world.close());

    /** The target registered for an instance, with its port. */
    async function targetOf(id: string, instance: string): Promise<Target> {
      const read = await world.groups.read(noTrouble, never);
      const found = read.find(({ group }) => group.id === id);
      return found?.targets.find((target) => target.id === instance) as Target;
    }

    it("reads every group with its instances, over more than one page", async () => {
      const ids = Array.from({ length: 25 }, (_, place) => world.add(`group-${place}`, [one]));
      const heard: Registered[] = [];
      const counts: number[] = [];
      const listener = {
        ...noTrouble,
        onListed: (count: number) => counts.push(count),
        onRead: (group: Registered) => heard.push(group),
      };
      const read = await world.groups.read(listener, never);
      expect(heard).toEqual(read);
      expect(counts.at(-1)).toBe(25);
      expect(read.map(({ group }) => group.id).toSorted()).toEqual(ids.toSorted());
      expect(read.every(({ targets }) => targets.length === 1 && targets[0]?.id === one)).toBe(
        true,
      );
      expect(read.every(({ group }) => group.kind === world.groups.kind)).toBe(true);
    });

    it("takes neither a response without a list nor an empty one as the end of a target", async () => {
      const id = world.add("web", [one]);
      const target = await targetOf(id, one);
      world.omit("NoList");
      const unreadable = { code: "CLOUD_UNREACHABLE", message: expect.stringContaining("no list") };
      await expect(world.groups.read(noTrouble, never)).rejects.toMatchObject(unreadable);
      await expect(world.groups.remaining(id, [target], never)).rejects.toMatchObject(unreadable);
      world.omit("Empty");
      expect(await world.groups.remaining(id, [target], never)).toMatchObject([target]);
    });

    it("deregisters the given targets and no others, and registers them again", async () => {
      const id = world.add("web", [one, two]);
      const target = await targetOf(id, one);
      await world.groups.deregister(id, [target], never);
      expect(world.serving(id)).toEqual([two]);
      expect(await world.groups.register(id, [target], never)).toBe("Registered");
      expect(world.serving(id).toSorted()).toEqual([one, two]);
    });

    it("accepts deregistering targets that are not registered", async () => {
      const id = world.add("web", [one]);
      const target = await targetOf(id, one);
      await world.groups.deregister(id, [target], never);
      await world.groups.deregister(id, [target, { ...target, id: two }], never);
      expect(world.serving(id)).toEqual([]);
    });

    it("reports which targets still have connections, until those have drained", async () => {
      const id = world.add("web", [one, two], 60_000);
      const target = await targetOf(id, one);
      const [before] = await world.groups.remaining(id, [target], never);
      expect(before).toMatchObject(target);
      await world.groups.deregister(id, [target], never);
      expect(await world.groups.remaining(id, [target], never)).toEqual([target]);
      world.pass(60_000);
      expect(await world.groups.remaining(id, [target], never)).toEqual([]);
    });

    it("treats a group that does not exist as one without targets", async () => {
      const gone = world.add("web", [one]).replace(/web/, "bew");
      const target = { id: one, port: 80 };
      await world.groups.deregister(gone, [target], never);
      expect(await world.groups.register(gone, [target], never)).toBe("Gone");
      expect(await world.groups.remaining(gone, [target], never)).toEqual([]);
    });

    it("treats a machine that does not exist as one without targets", async () => {
      const id = world.add("web", [two]);
      const target = { ...(await targetOf(id, two)), id: one };
      world.terminate(one);
      await world.groups.deregister(id, [target], never);
      expect(await world.groups.remaining(id, [target], never)).toEqual([]);
      expect(world.serving(id)).toEqual([two]);
    });

    it("deregisters and looks at the others of a batch if one machine does not exist", async () => {
      const id = world.add("web", [one, two]);
      const target = await targetOf(id, two);
      const targets = [{ ...target, id: three }, { ...target, id: one }, target];
      world.terminate(three);
      const clock = realClock;
      const lingerMs = millis(1);
      const deregister = new GroupBatches({
        send: world.groups.deregister.bind(world.groups),
        clock,
        lingerMs,
      });
      const look = new GroupBatches({
        send: world.groups.remaining.bind(world.groups),
        clock,
        lingerMs,
      });
      const left = () => Promise.all(targets.map((one) => look.ask(id, [one], never)));
      const idsOf = (found: readonly Target[]) => found.map((found) => found.id);
      const ofEach = await left();
      expect(ofEach.flatMap(idsOf)).toEqual(expect.arrayContaining([one, two]));
      await Promise.all(targets.map((one) => deregister.ask(id, [one], never)));
      expect(world.serving(id)).toEqual([]);
      expect((await left()).flatMap(idsOf)).toEqual([]);
    });

    it("throws the signal's reason, and changes nothing", async () => {
      const id = world.add("web", [one]);
      const target = await targetOf(id, one);
      const signal = AbortSignal.abort(new Error("the lead is lost"));
      await expect(world.groups.deregister(id, [target], signal)).rejects.toThrow(
        "the lead is lost",
      );
      await expect(world.groups.read(noTrouble, signal)).rejects.toThrow("the lead is lost");
      expect(world.serving(id)).toEqual([one]);
    });

    it.each([
      ["Unreachable", "CLOUD_UNREACHABLE"],
      ["RateLimited", "CLOUD_RATE_LIMITED"],
      ["RightMissing", "CLOUD_RIGHT_MISSING"],
    ] as const)("throws on the fault %s, and recovers from it", async (fault, code) => {
      const id = world.add("web", [one]);
      const target = await targetOf(id, one);
      world.fail(fault);
      await expect(world.groups.read(noTrouble, never)).rejects.toMatchObject({ code });
      await expect(world.groups.deregister(id, [target], never)).rejects.toMatchObject({ code });
      await expect(world.groups.register(id, [target], never)).rejects.toMatchObject({ code });
      await expect(world.groups.remaining(id, [target], never)).rejects.toMatchObject({ code });
      world.heal();
      await world.groups.deregister(id, [target], never);
      expect(world.serving(id)).toEqual([]);
    });
  });
}
