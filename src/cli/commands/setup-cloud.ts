import type { ReleaseMode } from "../../core/policy/policy.ts";
import { LastcallError } from "../../errors.ts";
import { runScript } from "../../runtime/run-script.ts";
import type { CommandInput, CommandRun } from "../command-line/command-spec.ts";

type Options = CommandInput<"setup">["options"];
type ScriptOf = (options: Options) => Promise<string>;

/**
 * By the argument of `setup`: the script that gives the controller its rights in a cloud, or takes
 * them back.
 */
const scripts: Readonly<Record<string, ScriptOf>> = {
  gcp: gcpScript,
  aws: awsScript,
  azure: azureScript,
};

export const setupClouds = Object.keys(scripts);

/** Prints the script of a cloud, or runs it by bash. */
export const runSetupCloud: CommandRun<"setup"> = async ({ words, options, io }) => {
  const cloud = words[0] ?? "";
  const script = await (scripts[cloud] as ScriptOf)(options);
  if (!options.apply) {
    io.out(script);
    return 0;
  }
  const end = await runScript(script, io);
  if (end === "Ended") return 0;
  const why =
    "notRun" in end
      ? `bash could not be started (${end.notRun}) and nothing was done, expected bash on the PATH; without --apply the script is printed`
      : `the script ended with ${end.endedBy}, see its last lines above`;
  throw new LastcallError("SCRIPT_FAILED", `Cannot set up ${cloud}: ${why}`);
};

async function gcpScript(options: Options): Promise<string> {
  const { setupScript, undoScript } = await import("../../cloud/gcp/setup-script.ts");
  const { cluster, location } = options;
  const project = wanted("gcp", "--project", options.project);
  if ((cluster === undefined) !== (location === undefined)) {
    const [given, lacking] =
      cluster === undefined ? ["--location", "--cluster"] : ["--cluster", "--location"];
    throw missing("gcp", `${given} needs ${lacking}, set both or neither`);
  }
  const make = options.undo ? undoScript : setupScript;
  return make({
    ...options,
    project,
    namespace: options.namespace ?? "lastcall",
    preemptionPoll: options.gcpPreemptionPoll !== undefined,
    cluster: cluster && location ? { name: cluster, location } : undefined,
  });
}

async function awsScript(options: Options): Promise<string> {
  const { awsSetupScript, awsUndoScript } = await import("../../cloud/aws/setup/setup-script.ts");
  const make = options.undo ? awsUndoScript : awsSetupScript;
  if (options.awsManagedTag !== undefined) {
    const { parseManagedTag } = await import("../../cloud/aws/tagged-machines.ts");
    parseManagedTag(options.awsManagedTag);
  }
  return make({
    ...options,
    mode: options.release as ReleaseMode,
    account: wanted("aws", "--account", options.account),
    region: wanted("aws", "--region", options.region),
    cluster: wanted("aws", "--cluster", options.cluster),
    namespace: options.namespace ?? "lastcall",
    hooks: options.sqsCompleteHooks,
    statusPoll: options.ec2StatusPoll !== undefined,
    managedTag: options.awsManagedTag !== undefined,
    actions: options.awsActions,
  });
}

async function azureScript(options: Options): Promise<string> {
  const { azureSetupScript, azureUndoScript } = await import("../../cloud/azure/setup-script.ts");
  const make = options.undo ? azureUndoScript : azureSetupScript;
  return make({
    ...options,
    subscription: wanted("azure", "--subscription", options.subscription),
    resourceGroup: wanted("azure", "--resource-group", options.resourceGroup),
    cluster: wanted("azure", "--cluster", options.cluster),
    namespace: options.namespace ?? "lastcall",
  });
}

/** What each flag that a cloud cannot do without is to name. */
const meanings: Readonly<Record<string, string>> = {
  "--project": "the project whose machines are released",
  "--cluster": "the cluster whose machines are released",
  "--account": "the account that the cluster is in",
  "--region": "the region that the cluster is in",
  "--subscription": "the subscription that the cluster is in",
  "--resource-group": "the resource group of the cluster itself",
};

function wanted(cloud: string, flag: string, value: string | undefined): string {
  if (value === undefined) {
    throw missing(cloud, `${flag} is required, set it to ${meanings[flag]}`);
  }
  return value;
}

function missing(cloud: string, what: string): LastcallError {
  return new LastcallError("USAGE", `Cannot set up ${cloud}: ${what}`);
}
