import type { Clock } from "../contracts/clock.ts";
import type { Cloud } from "../contracts/cloud-descriptor.ts";
import type { MetadataFetch } from "../contracts/metadata.ts";
import { clouds } from "./clouds.ts";
import { MetadataClient } from "./metadata/metadata-client.ts";

/**
 * Detects the name of the machine's cloud by querying all of them; undefined if none responds as
 * expected. Makes one attempt: the caller retries, because a metadata service may start later than
 * this process.
 */
export async function detectCloud(
  options: {
    readonly baseUrl?: string | undefined;
    readonly fetch: MetadataFetch;
    readonly clock: Clock;
  },
  signal: AbortSignal,
): Promise<string | undefined> {
  const { baseUrl = "http://169.254.169.254", fetch, clock } = options;
  const client = new MetadataClient({ baseUrl, fetch, clock });
  const responds = async ({ probe }: Pick<Cloud, "probe">): Promise<boolean> => {
    try {
      const { status, text, header } = await client.ask(probe.request, signal);
      return probe.fits({ status, text, flavor: header("metadata-flavor") });
    } catch {
      // No service, or that of another cloud.
      return false;
    }
  };
  const fits = await Promise.all(clouds.map(responds));
  signal.throwIfAborted();
  return clouds.find((_, place) => fits[place])?.facts.name;
}
