import type { LaunchTimeReading, LaunchTimes } from "../../contracts/cloud/launch-times.ts";
import type { Instant } from "../../core/time/time.ts";
import { isLastcallError, type LastcallError } from "../../errors.ts";
import { type ComputeClient, listItems } from "./compute-client.ts";
import { findInstanceRef, launchTimeOf } from "./compute-instance.ts";

/** Up to so many machines of a zone are asked for by name; for more the zone is read as a whole. */
const mostNames = 40;

/** Machines of one zone of one project: what one list covers. */
interface Place {
  readonly project: string;
  readonly zone: string;
  /** The providerID by the machine's name. */
  readonly wanted: ReadonlyMap<string, string>;
}

/**
 * Launch times by `instances.list`: one request a zone for up to 500 machines, with three fields of
 * each.
 */
export class ComputeLaunchTimes implements LaunchTimes {
  readonly #client: ComputeClient;

  constructor(client: ComputeClient) {
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
    { project, zone, wanted }: Place,
    into: { readonly bornAt: Map<string, Instant>; readonly signal: AbortSignal },
  ): Promise<void> {
    const names = [...wanted.keys()];
    const filter = names.map((name) => `(name = "${name}")`).join(" OR ");
    const list = {
      path: `/projects/${project}/zones/${zone}/instances`,
      query: {
        fields: "items(name,creationTimestamp,lastStartTimestamp),nextPageToken",
        ...(names.length > mostNames ? {} : { filter }),
      },
      action: `list the instances of ${project}/${zone}`,
      permission: "compute.instances.list",
    };
    const send = this.#client.sendPatiently.bind(this.#client);
    for await (const item of listItems(send, list, into.signal)) {
      const providerID = wanted.get(String(item.name));
      const bornAt = launchTimeOf(item);
      if (providerID !== undefined && bornAt !== undefined) into.bornAt.set(providerID, bornAt);
    }
  }
}

/** Machines of other clouds, and what is no machine's name, are asked of nobody. */
function placesOf(providerIDs: readonly string[]): readonly Place[] {
  const places = new Map<string, Place & { readonly wanted: Map<string, string> }>();
  for (const providerID of providerIDs) {
    const ref = findInstanceRef(providerID);
    if (ref === undefined) continue;
    const { project, zone, name } = ref;
    const key = `${project}/${zone}`;
    const place = places.get(key) ?? { project, zone, wanted: new Map<string, string>() };
    place.wanted.set(name, providerID);
    places.set(key, place);
  }
  return [...places.values()];
}
