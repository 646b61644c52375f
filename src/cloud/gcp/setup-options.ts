import { badSetup, wanted } from "../setup/required-option.ts";
import { type SetupChoice, setupScript, undoScript } from "./setup-script.ts";

/** The options of `lastcall setup` that this cloud reads. */
export interface GcpSetupOptions
  extends Omit<SetupChoice, "project" | "namespace" | "preemptionPoll" | "cluster"> {
  readonly undo: boolean;
  readonly project?: string | undefined;
  readonly namespace?: string | undefined;
  readonly cluster?: string | undefined;
  readonly location?: string | undefined;
  readonly gcpPreemptionPoll?: number | undefined;
}

/** The script that they ask for. Throws USAGE. */
export function scriptOf(options: GcpSetupOptions): string {
  const { cluster, location } = options;
  const project = wanted("gcp", {
    flag: "--project",
    value: options.project,
    meaning: "the project whose machines are released",
  });
  if ((cluster === undefined) !== (location === undefined)) {
    const [given, lacking] =
      cluster === undefined ? ["--location", "--cluster"] : ["--cluster", "--location"];
    throw badSetup("gcp", `${given} needs ${lacking}, set both or neither`);
  }
  if (options.keyFile && (options.googleServiceAccount === undefined || cluster !== undefined)) {
    const what = "--key-file needs --google-service-account, whose key it creates";
    throw badSetup("gcp", `${what}, and no --cluster, which is for Workload Identity`);
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
