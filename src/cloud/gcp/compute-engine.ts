import type { Clock } from "../../contracts/clock.ts";
import type { InstanceReleaser } from "../../contracts/cloud/instance-releaser.ts";
import type { LaunchTimes } from "../../contracts/cloud/launch-times.ts";
import type { NoticeFeed } from "../../contracts/cloud/notice-feed.ts";
import type { Rng } from "../../core/chance/rng.ts";
import { ComputeClient } from "./compute-client.ts";
import { defaultComputeEndpoint, parseComputeEndpoint } from "./compute-endpoint.ts";
import { ComputeLaunchTimes } from "./compute-launch-times.ts";
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
  /** The machines that run in the same managed group now, at most 500, or in the same cluster. */
  groupOf(providerID: string, signal: AbortSignal): Promise<readonly string[]>;
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
    groupOf: (providerID, signal) => releaser.groupOf(providerID, signal),
    launchTimes: new ComputeLaunchTimes(client),
    preemptions: (how) => new PreemptionFeed({ client, clock, rng, ...how }),
  };
}
