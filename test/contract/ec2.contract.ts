import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Ec2, mostAskedFor, type ScheduledEvent } from "../../src/cloud/aws/ec2-machine.ts";
import { instant } from "../../src/core/time/time.ts";

/** An EC2, and control over its instances. */
export interface Ec2World {
  readonly ec2: Ec2;
  schedule(...events: readonly ScheduledEvent[]): void;
  /** Makes an AWS service operate the instance, which hides it from lists by default. */
  operate(instance: string): void;
  tag(instance: string, tags: Readonly<Record<string, string>>): void;
  /** Until `heal`, every request fails with this fault. */
  fail(fault: "Unreachable" | "RateLimited" | "RightMissing"): void;
  heal(): void;
  close(): Promise<void>;
}

const never = new AbortController().signal;

function idOf(place: number): string {
  return `i-0${String(place).padStart(16, "0")}`;
}

const retirement: ScheduledEvent = {
  instance: idOf(1),
  id: "instance-event-0d59937288b749b32",
  code: "instance-retirement",
  description: "The instance is running on degraded hardware & <more>",
  notBeforeAt: instant(Date.UTC(2026, 10, 22, 12)),
};

/** What every implementation of `Ec2` guarantees. */
export function ec2Contract(name: string, makeWorld: () => Promise<Ec2World>): void {
  describe(`${name} as Ec2`, () => {
    let world: Ec2World;

    beforeEach(async () => {
      world = await makeWorld();
    });
    afterEach(() => world.close());

    it("returns nothing if nothing is scheduled", async () => {
      expect(await world.ec2.scheduledEvents(never)).toEqual([]);
    });

    it("returns each event as announced, even several of one instance", async () => {
      const reboot = { ...retirement, id: "instance-event-2", code: "system-reboot" };
      const bare = { instance: idOf(2), code: "instance-stop" };
      world.schedule(retirement, reboot, bare);
      expect(await world.ec2.scheduledEvents(never)).toEqual([retirement, reboot, bare]);
    });

    it("returns the events of an instance that an AWS service operates", async () => {
      world.operate(idOf(1));
      world.schedule(retirement);
      expect(await world.ec2.scheduledEvents(never)).toEqual([retirement]);
    });

    it("returns more than a page of events and of tags", async () => {
      const many = Array.from({ length: 25 }, (_, place) => ({
        ...retirement,
        instance: idOf(place),
        id: `instance-event-${place}`,
      }));
      world.schedule(...many);
      for (let place = 0; place < 25; place += 1) world.tag(idOf(place), { team: "a" });
      expect(await world.ec2.scheduledEvents(never)).toHaveLength(25);
      expect((await world.ec2.tagged({ key: "team" }, never)).size).toBe(25);
    });

    it("finds instances by a tag's key, and by its value if one is given", async () => {
      world.tag(idOf(1), { team: "a", other: "b" });
      world.tag(idOf(2), { team: "b" });
      world.tag(idOf(3), { Team: "a" });
      const ids = async (value?: string) => [
        ...(await world.ec2.tagged({ key: "team", value }, never)),
      ];
      expect(await ids()).toEqual([idOf(1), idOf(2)]);
      expect(await ids("a")).toEqual([idOf(1)]);
      expect(await ids("")).toEqual([]);
    });

    it.each(["*", "?", "a*", "\\", "a.b", "\\*"])(
      "takes the tag value %s literally",
      async (value) => {
        world.tag(idOf(1), { team: value });
        world.tag(idOf(2), { team: "ab" });
        world.tag(idOf(3), { team: "x" });
        expect([...(await world.ec2.tagged({ key: "team", value }, never))]).toEqual([idOf(1)]);
      },
    );

    it("finds only the given instances", async () => {
      for (const place of [1, 2, 3]) world.tag(idOf(place), { team: "a" });
      const only = [idOf(2), idOf(9)];
      expect([...(await world.ec2.tagged({ key: "team" }, never, only))]).toEqual([idOf(2)]);
    });

    it("accepts the maximum number of instances at once, and rejects more", async () => {
      const many = Array.from({ length: 200 }, (_, place) => idOf(place));
      for (const id of many) world.tag(id, { team: "a" });
      const ask = (count: number) =>
        world.ec2.tagged({ key: "team", value: "a" }, never, many.slice(0, count));
      expect((await ask(mostAskedFor)).size).toBe(mostAskedFor);
      await expect(ask(200)).rejects.toMatchObject({ code: "CLOUD_REFUSED" });
    });

    it.each([
      ["Unreachable", "CLOUD_UNREACHABLE"],
      ["RateLimited", "CLOUD_RATE_LIMITED"],
      ["RightMissing", "CLOUD_RIGHT_MISSING"],
    ] as const)("throws on the fault %s, and recovers from it", async (fault, code) => {
      world.schedule(retirement);
      world.fail(fault);
      await expect(world.ec2.scheduledEvents(never)).rejects.toMatchObject({ code });
      await expect(world.ec2.tagged({ key: "team" }, never)).rejects.toMatchObject({ code });
      world.heal();
      expect(await world.ec2.scheduledEvents(never)).toHaveLength(1);
    });
  });
}
