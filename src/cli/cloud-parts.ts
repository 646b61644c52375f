import type { InstanceReleaser } from "../contracts/instance-releaser.ts";
import type { MachineBirths } from "../contracts/machine-births.ts";
import { parseProviderId } from "../core/identity.ts";
import type { CommandIo } from "./command-io.ts";

/** What a controller has of the clouds. */
export interface CloudParts {
  /** The cloud behind a providerID; undefined where there is none to ask. */
  readonly releaserFor: (providerID: string) => InstanceReleaser | undefined;
  readonly births: MachineBirths;
}

/**
 * A cloud's code is loaded here once; its credentials are looked for only when it is first asked, and
 * no cloud is asked of which no machine is seen. Throws CONFIG_INVALID for an endpoint that is none.
 */
export async function cloudParts(
  options: { readonly gcpEndpoint?: string | undefined },
  io: CommandIo,
): Promise<CloudParts> {
  const { createComputeEngine } = await import("../cloud/gcp/compute-engine.ts");
  const gcp = createComputeEngine({
    endpoint: options.gcpEndpoint,
    keyFile: io.env.GOOGLE_APPLICATION_CREDENTIALS,
    fetch: io.fetch,
    clock: io.clock,
    rng: io.rng,
  });
  return {
    releaserFor: (id) => (parseProviderId(id)?.cloud === "gcp" ? gcp.releaser : undefined),
    births: gcp.births,
  };
}
