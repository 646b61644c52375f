import type { ReleaseMode } from "../../../core/policy/policy.ts";
import { wanted } from "../../setup/required-option.ts";
import { parseManagedTag } from "../ec2-machine.ts";
import { type AwsSetupChoice, awsSetupScript, awsUndoScript } from "./setup-script.ts";

/** The options of `lastcall setup` that this cloud reads. */
export interface AwsSetupOptions
  extends Pick<
    AwsSetupChoice,
    "identity" | "role" | "queue" | "serviceAccount" | "kubeconfig" | "context"
  > {
  readonly undo: boolean;
  readonly account?: string | undefined;
  readonly region?: string | undefined;
  readonly cluster?: string | undefined;
  readonly namespace?: string | undefined;
  readonly release: ReleaseMode;
  readonly sqsCompleteHooks: boolean;
  readonly ec2StatusPoll?: number | undefined;
  readonly awsManagedTag?: string | undefined;
  readonly awsActions: boolean;
}

/** The script that they ask for. Throws USAGE and CONFIG_INVALID. */
export function scriptOf(options: AwsSetupOptions): string {
  const make = options.undo ? awsUndoScript : awsSetupScript;
  if (options.awsManagedTag !== undefined) parseManagedTag(options.awsManagedTag);
  const { account, region, cluster } = options;
  return make({
    ...options,
    mode: options.release,
    account: wanted("aws", {
      flag: "--account",
      value: account,
      meaning: "the account that the cluster is in",
    }),
    region: wanted("aws", {
      flag: "--region",
      value: region,
      meaning: "the region that the cluster is in",
    }),
    cluster: wanted("aws", {
      flag: "--cluster",
      value: cluster,
      meaning: "the cluster whose machines are released",
    }),
    namespace: options.namespace ?? "lastcall",
    hooks: options.sqsCompleteHooks,
    statusPoll: options.ec2StatusPoll !== undefined,
    managedTag: options.awsManagedTag !== undefined,
    actions: options.awsActions,
  });
}
