import type { InstanceReleaser } from "../contracts/instance-releaser.ts";
import { parseProviderId } from "../core/identity.ts";
import type { CommandIo } from "./command-io.ts";

/**
 * The cloud behind each providerID. A cloud's code is loaded here once; its credentials are looked
 * for only when the first machine is released. Throws CONFIG_INVALID for an endpoint that is none.
 */
export async function cloudReleasers(
  options: { readonly gcpEndpoint?: string | undefined },
  io: CommandIo,
): Promise<(providerID: string) => InstanceReleaser | undefined> {
  const { createComputeReleaser } = await import("../cloud/gcp/compute-releaser.ts");
  const gcp = createComputeReleaser({
    endpoint: options.gcpEndpoint,
    keyFile: io.env.GOOGLE_APPLICATION_CREDENTIALS,
    fetch: io.fetch,
    clock: io.clock,
    rng: io.rng,
  });
  return (providerID) => (parseProviderId(providerID)?.cloud === "gcp" ? gcp : undefined);
}
