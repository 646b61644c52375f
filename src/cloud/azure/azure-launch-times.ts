import type { LaunchTimeReading, LaunchTimes } from "../../contracts/launch-times.ts";
import { textOf } from "../../core/json/json-field.ts";
import type { Instant } from "../../core/time/time.ts";
import { isLastcallError, type LastcallError } from "../../errors.ts";
import { type ArmClient, armItems } from "./arm-client.ts";
import { createdAtOf, findMachineRef, type MachineRef, readPermissionOf } from "./azure-machine.ts";
import { computeVersion } from "./release-act.ts";

/** Machines of one scale set, or single ones of a resource group: what one list can tell. */
interface Place {
  /** Any of them. */
  readonly ref: MachineRef;
  /** The providerID by the machine's id in lower case, since Azure spells its ids in either. */
  readonly wanted: Map<string, string>;
}

/** Creation times by a list of each scale set. */
export class AzureLaunchTimes implements LaunchTimes {
  readonly #client: ArmClient;

  constructor(client: ArmClient) {
    this.#client = client;
  }

  async launchTimesOf(
    providerIDs: readonly string[],
    signal: AbortSignal,
  ): Promise<LaunchTimeReading> {
    signal.throwIfAborted();
    const bornAt = new Map<string, Instant>();
    const faults: LastcallError[] = [];
    const places = placesOf(providerIDs).map(async (place) => {
      try {
        await this.#readPlace(place, { bornAt, signal });
      } catch (error) {
        signal.throwIfAborted();
        if (!isLastcallError(error)) throw error;
        faults.push(error);
      }
    });
    await Promise.all(places);
    return { bornAt, faults };
  }

  async #readPlace(
    { ref, wanted }: Place,
    into: { readonly bornAt: Map<string, Instant>; readonly signal: AbortSignal },
  ): Promise<void> {
    const call = {
      method: "GET",
      path: ref.collection,
      apiVersion: computeVersion,
      action: `list ${ref.collection}`,
      permission: readPermissionOf(ref),
    } as const;
    for await (const item of armItems(this.#client, call, into.signal)) {
      const providerID = wanted.get((textOf(item.id) ?? "").toLowerCase());
      const createdAt = createdAtOf(item);
      if (providerID !== undefined && createdAt !== undefined) {
        into.bornAt.set(providerID, createdAt);
      }
    }
  }
}

/** Machines of other clouds, and what is no virtual machine, are asked of nobody. */
function placesOf(providerIDs: readonly string[]): readonly Place[] {
  const places = new Map<string, Place>();
  for (const providerID of providerIDs) {
    const ref = findMachineRef(providerID);
    if (ref === undefined) continue;
    const key = ref.collection.toLowerCase();
    const place = places.get(key) ?? { ref, wanted: new Map() };
    place.wanted.set(ref.id.toLowerCase(), providerID);
    places.set(key, place);
  }
  return [...places.values()];
}
