import type { LaunchTimeReading, LaunchTimes } from "../../contracts/launch-times.ts";
import type { Instant } from "../../core/time/time.ts";
import { isLastcallError, type LastcallError } from "../../errors.ts";
import type { Ec2Instances, InRegion } from "./ec2-machine.ts";
import { findInstanceRef, type InstanceRef } from "./instance-id.ts";

/** Instances of one region: what one row of requests can tell. */
interface Place {
  readonly region: InstanceRef["region"];
  /** The providerID by the instance's id. */
  readonly wanted: Map<string, string>;
}

/** Launch times by `DescribeInstances`: one request for 190 instances of a region. */
export class Ec2LaunchTimes implements LaunchTimes {
  readonly #instancesIn: InRegion<Pick<Ec2Instances, "instances">>;

  constructor(instancesIn: InRegion<Pick<Ec2Instances, "instances">>) {
    this.#instancesIn = instancesIn;
  }

  async launchTimesOf(
    providerIDs: readonly string[],
    signal: AbortSignal,
  ): Promise<LaunchTimeReading> {
    signal.throwIfAborted();
    const bornAt = new Map<string, Instant>();
    const faults: LastcallError[] = [];
    const places = placesOf(providerIDs).map(async ({ region, wanted }) => {
      try {
        const found = await this.#instancesIn(region).instances([...wanted.keys()], signal);
        for (const { instanceId, state, launchedAt } of found) {
          const providerID = wanted.get(instanceId);
          if (providerID === undefined || launchedAt === undefined) continue;
          if (state !== "terminated") bornAt.set(providerID, launchedAt);
        }
      } catch (error) {
        signal.throwIfAborted();
        if (!isLastcallError(error)) throw error;
        faults.push(error);
      }
    });
    await Promise.all(places);
    return { bornAt, faults };
  }
}

/** Machines of other clouds, and what is no instance, are asked of nobody. */
function placesOf(providerIDs: readonly string[]): readonly Place[] {
  const places = new Map<string | undefined, Place>();
  for (const providerID of providerIDs) {
    const ref = findInstanceRef(providerID);
    if (ref === undefined) continue;
    const place = places.get(ref.region) ?? { region: ref.region, wanted: new Map() };
    place.wanted.set(ref.instanceId, providerID);
    places.set(ref.region, place);
  }
  return [...places.values()];
}
