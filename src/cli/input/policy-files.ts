import { join } from "node:path";
import { type PolicyReading, readPolicies } from "../../config/policy/read-policy.ts";
import { cronProblem } from "../../core/limits/windows.ts";
import { LastcallError } from "../../errors.ts";
import type { CommandIo } from "../command-line/command-io.ts";
import { readDir } from "./node-files.ts";

/**
 * Reads the policies of `-f`: files, the files of a folder, as kubectl does, and `-`, standard
 * input. Throws POLICY_INVALID, INPUT_INVALID and INPUT_UNREADABLE.
 */
export async function readPolicyFiles(
  paths: readonly string[],
  io: CommandIo,
): Promise<PolicyReading> {
  const files = (await Promise.all(paths.map(filesOf))).flat();
  const sources = await Promise.all(
    files.map(async (file) => ({
      file: file === "-" ? "standard input" : file,
      text: file === "-" ? await io.files.stdin() : await io.files.readText(file),
    })),
  );
  return readPolicies(sources, { cronProblem });
}

/** Not what is below it: the folder of a ConfigMap holds its files a second time, in `..data`. */
async function filesOf(path: string): Promise<readonly string[]> {
  const entries = path === "-" ? undefined : await readDir(path);
  if (entries === undefined) return [path];
  const files = entries
    .filter(({ name, kind }) => kind === "File" && /^[^.].*\.(ya?ml|json)$/i.test(name))
    .map(({ name }) => join(path, name));
  if (files.length > 0) return files.toSorted();
  const found = "found no .yaml, .yml or .json file, expected one of policies";
  throw new LastcallError("INPUT_INVALID", `Cannot read ${path}: ${found}`);
}
