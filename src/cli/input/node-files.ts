import { createReadStream } from "node:fs";
import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { type PolicyReading, readPolicies } from "../../config/policy/read-policy.ts";
import { cronProblem } from "../../core/limits/windows.ts";
import { LastcallError } from "../../errors.ts";
import { decodeText } from "../../runtime/process-io.ts";
import type { CommandIo } from "../command-line/command.ts";
import type { FileContent, ManifestFiles } from "./read-manifests.ts";

/** The real file system and standard input, for commands that read manifests. */
export function nodeFiles(stdin: AsyncIterable<Uint8Array>): ManifestFiles {
  return {
    readFile: readLimited,
    readDir,
    stdin: (limitBytes) => readStream(stdin, limitBytes),
  };
}

async function readLimited(path: string, limitBytes: number): Promise<FileContent> {
  try {
    const found = await stat(path);
    // A pipe such as that of `-f <(helm template .)` has no size, and may never end.
    if (!found.isFile() && !found.isDirectory()) {
      return await readStream(createReadStream(path), limitBytes);
    }
    const { size } = found;
    if (size > limitBytes) return { kind: "TooLarge", sizeBytes: size };
    return { kind: "Text", text: decodeText(await readFile(path)) };
  } catch (error) {
    return { kind: "Unreadable", why: reasonOf(error) };
  }
}

async function readDir(path: string): ReturnType<ManifestFiles["readDir"]> {
  const isDirectory = await stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );
  if (!isDirectory) return undefined;
  const entries = await readdir(path, { withFileTypes: true });
  return entries.map((entry) => ({
    name: entry.name,
    kind: entry.isDirectory() ? "Directory" : "File",
  }));
}

async function readStream(
  stream: AsyncIterable<Uint8Array>,
  limitBytes: number,
): Promise<FileContent> {
  const chunks: Uint8Array[] = [];
  let sizeBytes = 0;
  for await (const chunk of stream) {
    sizeBytes += chunk.byteLength;
    if (sizeBytes > limitBytes) return { kind: "TooLarge", sizeBytes };
    chunks.push(chunk);
  }
  return { kind: "Text", text: decodeText(Buffer.concat(chunks)) };
}

function reasonOf(error: unknown): string {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  if (code === "ENOENT") return "it does not exist";
  if (code === "EACCES" || code === "EPERM") return "permission denied";
  if (code === "EISDIR") return "it is a directory";
  return error instanceof Error ? error.message : String(error);
}

/**
 * Reads the policies of `-f`: files, the files in a folder, as kubectl does, and `-` for standard
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

/** Not recursive: a mounted ConfigMap holds its files a second time, in `..data`. */
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
