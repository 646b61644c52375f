import { vi } from "vitest";
import { AutoScaling } from "../../src/cloud/aws/auto-scaling.ts";
import { Ec2Client } from "../../src/cloud/aws/ec2-client.ts";
import { machineIdOf } from "../../src/cloud/aws/ec2-machine.ts";
import { Ec2LaunchTimes, Ec2Releaser } from "../../src/cloud/aws/elastic-compute.ts";
import { seededRng } from "../../src/core/chance/chance.ts";
import { instant, type Millis } from "../../src/core/time/time.ts";
import type { ReleaserWorld } from "../contract/instance-releaser.contract.ts";
import type { LaunchTimeWorld } from "../contract/launch-times.contract.ts";
import { Ec2Fleet, type FleetGroup, type FleetInstance } from "./ec2-fleet.ts";
import { ManualClock } from "./manual-clock.ts";
import { passTime } from "./pass-time.ts";

/** A releaser and the EC2 server behind it, connected by the AWS SDK, both on one manual clock. */
export interface Ec2World extends ReleaserWorld, LaunchTimeWorld {
  readonly fleet: Ec2Fleet;
  readonly group: FleetGroup;
  readonly clock: ManualClock;
  readonly releaser: Ec2Releaser;
}

export async function startEc2World(
  options: { readonly goneWithinMs?: Millis } = {},
): Promise<Ec2World> {
  const clock = new ManualClock(instant(Date.parse("2026-11-20T00:00:00Z")));
  const fleet = new Ec2Fleet(clock);
  await fleet.start();
  vi.stubEnv("AWS_ACCESS_KEY_ID", "test");
  vi.stubEnv("AWS_SECRET_ACCESS_KEY", "test");
  vi.stubEnv("AWS_ENDPOINT_URL", fleet.url);
  const group = fleet.addGroup("spot-group");
  const counted = countingCalls();
  const clients = {
    ec2: new Ec2Client({ region: "eu-west-1" }),
    groups: new AutoScaling({ region: "eu-west-1" }),
  };
  const instancesIn = () => counted.watch(clients.ec2);
  const groupsIn = () => counted.watch(clients.groups);
  const pass = <T>(work: Promise<T>) =>
    passTime(work, { clock, quiet: () => counted.inFlight() === 0 });

  /** The latest instance in the place of this machine that has not been terminated. */
  function standing(providerID: string): FleetInstance | undefined {
    const place = fleet.find(idIn(providerID))?.place;
    return fleet.instances.findLast((one) => one.place === place && one.state !== "terminated");
  }

  return {
    fleet,
    group,
    clock,
    releaser: new Ec2Releaser({ instancesIn, groupsIn, clock, rng: seededRng(1), ...options }),
    launchTimes: new Ec2LaunchTimes(instancesIn),
    modes: ["Recreate", "Delete", "DeleteInstance"],
    tellsTime: true,
    namesOf: (providerID) => {
      const { id = "", address = "" } = standing(providerID) ?? {};
      const host = `ip-${address.replaceAll(".", "-")}`;
      return [id, `${host}.eu-west-1.compute.internal`, host];
    },
    unknownProviderID: providerIdOf("i-00000000000000bad"),
    addMachine(_, mode) {
      const instance = fleet.addInstance(mode === "DeleteInstance" ? undefined : group);
      return { providerID: providerIdOf(instance.id), id: idOf(instance) };
    },
    idOf: (providerID) => {
      const instance = standing(providerID);
      return instance && idOf(instance);
    },
    async replace(providerID) {
      const instance = standing(providerID) as FleetInstance;
      // A stop and a start: EC2 never reuses an instance's id.
      instance.launchedAt = instant(instance.launchedAt + 60_000);
      return idOf(instance);
    },
    async remove(providerID) {
      const instance = standing(providerID) as FleetInstance;
      instance.state = "terminated";
      instance.group = undefined;
    },
    fail: (fault) => {
      fleet.fault = fault;
    },
    heal: () => {
      fleet.fault = undefined;
    },
    asked: () => fleet.taken,
    bornHere: (providerID) => {
      const place = fleet.find(idIn(providerID))?.place;
      return fleet.instances.filter((one) => one.place === place).length;
    },
    pass,
    passUntil: (condition) => pass(until(condition)),
    close: async () => {
      vi.unstubAllEnvs();
      await fleet.close();
    },
  };
}

export function providerIdOf(instanceId: string): string {
  return `aws:///eu-west-1a/${instanceId}`;
}

function idIn(providerID: string): string {
  return providerID.split("/").at(-1) ?? "";
}

/** The id in the releaser's format. */
function idOf({ id, state, launchedAt }: FleetInstance): string {
  return machineIdOf({ instanceId: id, state, launchedAt, nodePool: undefined });
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setImmediate(resolve));
}

/** Counts the calls of a client that are in flight, because the AWS SDK hides its sockets. */
function countingCalls() {
  let count = 0;
  const watch = <T extends object>(client: T): T =>
    new Proxy(client, {
      get(target, name) {
        const member: unknown = Reflect.get(target, name, target);
        if (typeof member !== "function") return member;
        return async (...args: readonly unknown[]) => {
          count += 1;
          try {
            return await member.apply(target, args);
          } finally {
            count -= 1;
          }
        };
      },
    });
  return { watch, inFlight: () => count };
}
