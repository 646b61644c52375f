import type { LaunchTimeReading } from "../../contracts/cloud/instances.ts";
import type { Instant } from "../../core/time/time.ts";
import { isLastcallError, type LastcallError } from "../../errors.ts";

/** Machines covered by one request or list: those of a region, a zone or a scale set. */
export interface MachinePlace<Ref> {
  /** Any one of the machines. */
  readonly ref: Ref;
  /** The providerID by the id in the response. */
  readonly wanted: ReadonlyMap<string, string>;
}

/** Finds the place and id of a machine; undefined if it is not in this cloud. */
export type FindPlace<Ref> = (
  providerID: string,
) => { readonly ref: Ref; readonly key: string; readonly id: string } | undefined;

/** Groups machines by place. Omits those of other clouds. */
export function placesOf<Ref>(
  providerIDs: readonly string[],
  find: FindPlace<Ref>,
): readonly MachinePlace<Ref>[] {
  const places = new Map<string, { readonly ref: Ref; readonly wanted: Map<string, string> }>();
  for (const providerID of providerIDs) {
    const found = find(providerID);
    if (found === undefined) continue;
    const place = places.get(found.key) ?? { ref: found.ref, wanted: new Map() };
    place.wanted.set(found.id, providerID);
    places.set(found.key, place);
  }
  return [...places.values()];
}

/**
 * Reads all places concurrently. A place that cannot be read adds to the faults. `read` adds to
 * `bornAt` by providerID. Rejects with the signal's reason when it aborts.
 */
export async function readPlaces<Ref>(
  places: readonly MachinePlace<Ref>[],
  read: (place: MachinePlace<Ref>, bornAt: Map<string, Instant>) => Promise<void>,
  signal: AbortSignal,
): Promise<LaunchTimeReading> {
  signal.throwIfAborted();
  const bornAt = new Map<string, Instant>();
  const faults: LastcallError[] = [];
  const reads = places.map(async (place) => {
    try {
      await read(place, bornAt);
    } catch (error) {
      signal.throwIfAborted();
      if (!isLastcallError(error)) throw error;
      faults.push(error);
    }
  });
  await Promise.all(reads);
  return { bornAt, faults };
}
