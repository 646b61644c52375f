import type { LaunchTimeReading } from "../../contracts/cloud/launch-times.ts";
import type { Instant } from "../../core/time/time.ts";
import { isLastcallError, type LastcallError } from "../../errors.ts";

/** Machines that one request, or one list, tells of: those of a region, a zone, a scale set. */
export interface MachinePlace<Ref> {
  /** Any of them. */
  readonly ref: Ref;
  /** The providerID by the id that the answer has. */
  readonly wanted: ReadonlyMap<string, string>;
}

/** Where a machine is asked for, and by which id; undefined: not in this cloud. */
export type FindPlace<Ref> = (
  providerID: string,
) => { readonly ref: Ref; readonly key: string; readonly id: string } | undefined;

/** Machines of other clouds, and what is no machine, are asked of nobody. */
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
 * Asks for all places side by side. One that cannot be read is a fault of the reading, and the
 * others count; an abort rejects with the signal's reason. `read` adds to `bornAt`, by providerID.
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
