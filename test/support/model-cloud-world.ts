import { hours, type Instant, instant, plus } from "../../src/core/time/time.ts";
import { type ErrorCode, LastcallError } from "../../src/errors.ts";
import { eventLoopTurn } from "../../src/runtime/real-clock.ts";
import {
  type MachineEvent,
  type MachineGroup,
  type ModelMachine,
  neverPreempted,
  providerIdOf,
} from "../../src/sim/cloud/model-machine.ts";
import { type ModelCluster, startModelCluster } from "../../src/sim/model-cluster.ts";
import { VirtualClock } from "../../src/sim/time/virtual-clock.ts";
import type { ReleaserWorld } from "../contract/instance-releaser.contract.ts";
import type { LaunchTimeWorld } from "../contract/launch-times.contract.ts";
import { allClear } from "./machine-releaser.ts";

/** Longer than anything that a test starts. */
const patience = hours(2);

const group: MachineGroup = {
  name: "pool",
  zone: "europe-west1-b",
  size: 8,
  price: "Preemptible",
};

const faults = {
  Unreachable: "CLOUD_UNREACHABLE",
  RateLimited: "CLOUD_RATE_LIMITED",
  RightMissing: "CLOUD_RIGHT_MISSING",
} as const satisfies Record<string, ErrorCode>;

/**
 * The model cloud as a contract suite sees it. Only the suite makes anything happen to its
 * machines.
 */
export interface ModelCloudWorld extends ReleaserWorld, LaunchTimeWorld {
  readonly cluster: ModelCluster;
  readonly clock: VirtualClock;
}

export async function startModelCloudWorld(): Promise<ModelCloudWorld> {
  const startAt: Instant = instant(Date.UTC(2026, 10, 20));
  const clock = new VirtualClock({ startAt, settle: eventLoopTurn });
  const cluster = startModelCluster({
    clock,
    seed: 5,
    groups: [group],
    preemptions: neverPreempted,
  });
  const { cloud } = cluster;
  const events: MachineEvent[] = [];
  cloud.subscribe((event) => events.push(event));
  // The machines already exist: tests get one after another, whatever its name.
  const free = [...cloud.machines()];
  let removed = 0;

  function now(providerID: string): ModelMachine | undefined {
    const machine = cloud.machines().find((one) => providerIdOf(one) === providerID);
    return machine?.state === "Gone" ? undefined : machine;
  }

  function happened(kind: MachineEvent["kind"], providerID?: string): number {
    const isMeant = ({ machine }: MachineEvent) =>
      providerID === undefined || providerIdOf(machine) === providerID;
    return events.filter((event) => event.kind === kind && isMeant(event)).length;
  }

  async function passUntil(condition: () => boolean): Promise<void> {
    if (await clock.runUntilDone(condition, plus(clock.now(), patience))) return;
    throw new Error(`still not so after ${patience} ms`);
  }

  async function pass<T>(work: Promise<T>): Promise<T> {
    let isSettled = false;
    const settle = (): void => {
      isSettled = true;
    };
    work.then(settle, settle);
    await passUntil(() => isSettled);
    return work;
  }

  return {
    cluster,
    clock,
    releaser: cloud,
    launchTimes: cloud,
    modes: ["Recreate", "Delete", "DeleteInstance"],
    tellsTime: true,
    namesOf: (providerID) => [now(providerID)?.name ?? ""],
    unknownProviderID: `gce://demo/${group.zone}/nobody`,
    addMachine() {
      const machine = free.shift();
      if (machine === undefined) throw new Error("the group has no machine left");
      return { providerID: providerIdOf(machine), id: machine.id };
    },
    idOf: (providerID) => now(providerID)?.id,
    async replace(providerID) {
      const before = now(providerID);
      cloud.preempt(before?.name ?? "");
      await passUntil(() => ![undefined, before?.id].includes(now(providerID)?.id));
      return now(providerID)?.id ?? "";
    },
    async remove(providerID) {
      removed += 1;
      const request = { providerID, machineId: now(providerID)?.id ?? "", mode: "Delete" } as const;
      const requestId = `by somebody else, ${removed}`;
      await pass(
        cloud.release({ ...request, requestId, lastLook: allClear }, new AbortController().signal),
      );
    },
    fail(fault) {
      const error = new LastcallError(faults[fault], `Cannot continue: ${fault}`);
      for (const on of ["describe", "check", "release", "launchTimes"] as const) {
        cloud.failNext({ on, error, times: 1000 });
      }
    },
    heal: () => cloud.stopFailing(),
    asked: () => happened("Stopping") - removed,
    bornHere: (providerID) => 1 + happened("Launched", providerID),
    pass,
    passUntil,
    close: async () => cluster.stop(),
  };
}
