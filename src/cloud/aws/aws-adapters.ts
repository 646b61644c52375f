import type { CloudAccessOptions, CloudAdapters } from "../../contracts/cloud-descriptor.ts";
import type { AwsAccessOptions } from "./aws-access.ts";
import type { AwsSetupOptions } from "./setup/setup-options.ts";

export const awsAdapters = {
  access: async (options: AwsAccessOptions, parts: CloudAccessOptions) =>
    (await import("./aws-access.ts")).awsAccess(options, parts),
  setupScript: async (options: AwsSetupOptions) =>
    (await import("./setup/setup-options.ts")).scriptOf(options),
} satisfies CloudAdapters;
