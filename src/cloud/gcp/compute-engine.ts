import type { Clock } from "../../contracts/clock.ts";
import type {
  InstanceReleaser,
  LaunchTimeReading,
  LaunchTimes,
} from "../../contracts/cloud/instances.ts";
import type { NoticeFeed } from "../../contracts/cloud/notices.ts";
import type { Rng } from "../../core/chance/rng.ts";
import type { Instant } from "../../core/time/time.ts";
import { type MachinePlace, placesOf, readPlaces } from "../release/launch-times.ts";
import {
  ComputeClient,
  defaultComputeEndpoint,
  listItems,
  parseComputeEndpoint,
} from "./compute-client.ts";
import { type ComputeInstanceRef, findInstanceRef, launchTimeOf } from "./compute-instance.ts";
import { ComputeReleaser } from "./compute-releaser.ts";
import { googleTokens } from "./google-auth.ts";
import { PreemptionFeed, type PreemptionFeedOptions } from "./preemption-feed.ts";

export interface ComputeSettings {
  /** The value of `--gcp-endpoint`. */
  readonly endpoint?: string | undefined;
  /** The value of GOOGLE_APPLICATION_CREDENTIALS. */
  readonly keyFile?: string | undefined;
  readonly fetch: typeof fetch;
  readonly clock: Clock;
  readonly rng: Rng;
}

/** What the controller has of Compute Engine; all over one client and one set of credentials. */
export interface ComputeEngine {
  readonly releaser: InstanceReleaser;
  readonly launchTimes: LaunchTimes;
  /** The machines that run in the same managed groups now, or in the same cluster. */
  groupsOf(providerIDs: readonly string[], signal: AbortSignal): Promise<readonly string[]>;
  preemptions(how: Pick<PreemptionFeedOptions, "pollMs" | "machines">): NoticeFeed;
}

/**
 * Puts the parts together; nothing is sent yet. Throws CONFIG_INVALID for an endpoint that cannot
 * be one.
 */
export function createComputeEngine(settings: ComputeSettings): ComputeEngine {
  const { fetch, clock, rng, keyFile } = settings;
  const endpoint = parseComputeEndpoint(settings.endpoint ?? defaultComputeEndpoint);
  const tokens = googleTokens({ endpoint, keyFile });
  const client = new ComputeClient({ endpoint, tokens, fetch, clock, rng });
  const releaser = new ComputeReleaser({ client, clock, rng });
  return {
    releaser,
    groupsOf: (providerIDs, signal) => releaser.groupsOf(providerIDs, signal),
    launchTimes: new ComputeLaunchTimes(client),
    preemptions: (how) => new PreemptionFeed({ client, clock, rng, ...how }),
  };
}

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
