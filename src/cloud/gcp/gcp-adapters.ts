import type {
  CloudAccess,
  CloudAccessOptions,
  CloudAdapters,
} from "../../contracts/cloud-descriptor.ts";
import type { Millis } from "../../core/time/time.ts";
import type { GcpSetupOptions } from "./setup-options.ts";

export const gcpAdapters = {
  access: gcpAccess,
  setupScript: async (options: GcpSetupOptions) =>
    (await import("./setup-options.ts")).scriptOf(options),
} satisfies CloudAdapters;

async function gcpAccess(
  options: {
    readonly gcpEndpoint?: string | undefined;
    readonly gcpPreemptionPoll?: Millis | undefined;
  },
  { env, ...parts }: CloudAccessOptions,
): Promise<CloudAccess> {
  const { createComputeEngine } = await import("./compute-engine.ts");
  const machines = createComputeEngine({
    endpoint: options.gcpEndpoint,
    keyFile: env.GOOGLE_APPLICATION_CREDENTIALS,
    ...parts,
  });
  const pollMs = options.gcpPreemptionPoll;
  if (pollMs === undefined) return { machines };
  return {
    machines,
    feedsFor: (about) => [machines.preemptions({ pollMs, machines: about.machines })],
  };
}
