import { setupScript } from "../cloud/gcp/setup-script.ts";
import { LastcallError } from "../errors.ts";
import { runScript } from "../runtime/run-script.ts";
import type { CommandRun } from "./command-spec.ts";

/** Prints the script that gives the controller its rights on Compute Engine, or runs it by bash. */
export const runSetupGcp: CommandRun<"setup"> = async ({ options, io }) => {
  const { project, cluster, location } = options;
  if (project === undefined) throw missing("--project", "the project whose machines are released");
  if ((cluster === undefined) !== (location === undefined)) {
    throw missing(cluster === undefined ? "--cluster" : "--location", "both of them or neither");
  }
  const script = setupScript({
    ...options,
    project,
    namespace: options.namespace ?? "lastcall",
    preemptionPoll: options.gcpPreemptionPoll !== undefined,
    cluster: cluster && location ? { name: cluster, location } : undefined,
  });
  if (!options.apply) {
    io.out(script);
    return 0;
  }
  const end = await runScript(script, io);
  if (end === "Ended") return 0;
  throw new LastcallError(
    "SCRIPT_FAILED",
    `Cannot set up Compute Engine: the script ended with ${end}, its last lines say why`,
  );
};

function missing(flag: string, wanted: string): LastcallError {
  return new LastcallError("USAGE", `Cannot set up gcp: ${flag} is missing, expected ${wanted}`);
}
