import type { LaunchTimeReading, LaunchTimes } from "../../contracts/cloud/launch-times.ts";
import type { Instant } from "../../core/time/time.ts";
import { type MachinePlace, placesOf, readPlaces } from "../release/launch-times.ts";
import { type ComputeClient, listItems } from "./compute-client.ts";
import { type ComputeInstanceRef, findInstanceRef, launchTimeOf } from "./compute-instance.ts";

/** Up to so many machines of a zone are asked for by name; for more the zone is read as a whole. */
const mostNames = 40;

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
    const places = placesOf(providerIDs, (providerID) => {
      const ref = findInstanceRef(providerID);
      return ref && { ref, key: `${ref.project}/${ref.zone}`, id: ref.name };
    });
    return readPlaces(places, (place, bornAt) => this.#readZone(place, { bornAt, signal }), signal);
  }

  async #readZone(
    { ref, wanted }: MachinePlace<ComputeInstanceRef>,
    into: { readonly bornAt: Map<string, Instant>; readonly signal: AbortSignal },
  ): Promise<void> {
    const { project, zone } = ref;
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
