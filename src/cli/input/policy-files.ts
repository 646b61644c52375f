import { type PolicyReading, readPolicies } from "../../config/policy/read-policy.ts";
import { cronProblem } from "../../core/limits/cron-window.ts";
import type { CommandIo } from "../command-line/command-io.ts";

/**
 * Reads the policies of `-f`; `-` is standard input. Throws POLICY_INVALID and INPUT_UNREADABLE.
 */
export async function readPolicyFiles(
  paths: readonly string[],
  io: CommandIo,
): Promise<PolicyReading> {
  const sources = await Promise.all(
    paths.map(async (file) => ({
      file: file === "-" ? "standard input" : file,
      text: file === "-" ? await io.files.stdin() : await io.files.readText(file),
    })),
  );
  return readPolicies(sources, { cronProblem });
}
