import { createReadStream } from "node:fs";
import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import {
  type FileContent,
  type ManifestFiles,
  type ReadManifests,
  readManifests,
  unrenderedChart,
} from "../../audit/input/read-manifests.ts";
import { type PolicyReading, readPolicies } from "../../config/policy/read-policy.ts";
import { describeValue } from "../../config/problem.ts";
import type { KubeObject } from "../../contracts/kube-api.ts";
import { valueAt } from "../../core/json/json-field.ts";
import { cronProblem } from "../../core/limits/windows.ts";
import { parseInstant } from "../../core/time/time.ts";
import { LastcallError } from "../../errors.ts";
import { decodeText, fileFault } from "../../runtime/process-io.ts";
import type { CommandIo } from "../command-line/command.ts";

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
    return { kind: "Unreadable", why: fileFault(error) };
  }
}

/** Throws INPUT_UNREADABLE. */
async function readDir(path: string): ReturnType<ManifestFiles["readDir"]> {
  const isDirectory = await stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );
  if (!isDirectory) return undefined;
  const entries = await readdir(path, { withFileTypes: true }).catch((error: unknown) => {
    const problem = `Cannot read ${path}: ${fileFault(error)}, expected a readable folder`;
    throw new LastcallError("INPUT_UNREADABLE", problem, { cause: error });
  });
  // A pipe, socket or device in a folder is not a manifest, and reading one may never end.
  const mayBeRead = entries.filter(
    (entry) => entry.isDirectory() || entry.isFile() || entry.isSymbolicLink(),
  );
  return mayBeRead.map((entry) => ({
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
  if (entries.some(({ name }) => name === "Chart.yaml")) {
    throw new LastcallError("INPUT_INVALID", `Cannot read ${path}: ${unrenderedChart}`);
  }
  const files = entries
    .filter(({ name, kind }) => kind === "File" && /^[^.].*\.(ya?ml|json)$/i.test(name))
    .map(({ name }) => join(path, name));
  if (files.length > 0) return files.toSorted();
  const found = "found no .yaml, .yml or .json file, expected one with a DeparturePolicy";
  throw new LastcallError("INPUT_INVALID", `Cannot read ${path}: ${found}`);
}

/** An object, and the file it was read from. */
export interface ReadObject {
  readonly file: string;
  readonly object: KubeObject;
}

/** The kinds that a plan reads: a list of one of these without items is incomplete, not empty. */
const listOfFleet =
  /^(Node|Pod|PodDisruptionBudget|Namespace|DaemonSet|Departure|DeparturePolicy)List$/;

/**
 * Reads the output of `kubectl get … -o json` (or yaml) from the same files, folders and standard
 * input as the audit. Returns a list of one kind without items as it is. Refuses what the audit
 * skips: a plan of half a fleet is a different plan. Throws INPUT_UNREADABLE, and INPUT_INVALID
 * with file and line for anything that is not a Kubernetes object.
 */
export async function readObjects(
  paths: readonly string[],
  files: ManifestFiles,
): Promise<readonly ReadObject[]> {
  const read = await readManifests(paths, { files, detail: "Values" });
  const [unreadable] = read.unreadable;
  if (unreadable !== undefined) throw new LastcallError("INPUT_UNREADABLE", unreadable);
  const objects = [...read.sources, ...read.emptyLists].map(({ file = "-", json }) => ({
    file: file === "-" ? "standard input" : file,
    object: json as KubeObject,
  }));
  const [problem] = [...read.problems, ...incomplete(read), ...objects.flatMap(withoutItems)];
  if (problem !== undefined) throw new LastcallError("INPUT_INVALID", problem);
  return objects;
}

/** For example the pipe of a kubectl that failed: a missing fleet is not an empty one. */
function incomplete({ empty, others }: ReadManifests): readonly string[] {
  const output = "expected the output of kubectl get -o json";
  return [
    ...empty.map(({ path, kind }) =>
      kind === "Folder"
        ? `Cannot read ${path}: found no .json, .yaml or .yml file, ${output}`
        : `Cannot read ${path === "-" ? "standard input" : path}:1: found nothing, ${output}`,
    ),
    ...others.map((at) => `Cannot read ${at}: found no kind, ${output}`),
  ];
}

function withoutItems({ file, object }: ReadObject): readonly string[] {
  const { kind = "", items } = object as KubeObject & { readonly items?: unknown };
  if (!listOfFleet.test(kind) || Array.isArray(items)) return [];
  return [`Cannot read ${file}: found a ${kind} without items`];
}

interface Expectation {
  readonly what: string;
  readonly isMet: (value: unknown) => boolean;
}

const text: Expectation = { what: "a text", isMet: (value) => typeof value === "string" };

const yesOrNo: Expectation = {
  what: "true or false",
  isMet: (value) => typeof value === "boolean",
};

const whole: Expectation = { what: "a whole number", isMet: Number.isInteger };

const list: Expectation = { what: "a list", isMet: Array.isArray };

const fields: Expectation = {
  what: "an object",
  isMet: (value) => typeof value === "object" && !Array.isArray(value),
};

const time: Expectation = {
  what: "an RFC 3339 instant such as 2026-12-01T00:00:00Z",
  isMet: (value) => typeof value === "string" && parseInstant(value) !== undefined,
};

const countOrShare: Expectation = {
  what: "a whole number or a share such as 50%",
  isMet: (value) => Number.isInteger(value) || (typeof value === "string" && /^\d+%$/.test(value)),
};

const everyObject: Readonly<Record<string, Expectation>> = {
  "metadata.name": text,
  "metadata.namespace": text,
  "metadata.uid": text,
  "metadata.creationTimestamp": time,
  "metadata.deletionTimestamp": time,
  "metadata.labels": fields,
  "metadata.annotations": fields,
};

/** The fields that the plan depends on: misreading any of them would change it. */
const byKind: Readonly<Record<string, Readonly<Record<string, Expectation>>>> = {
  Node: {
    "spec.providerID": text,
    "spec.unschedulable": yesOrNo,
    "spec.taints": list,
    "status.conditions": list,
  },
  Pod: {
    "metadata.ownerReferences": list,
    "spec.nodeName": text,
    "spec.priority": whole,
    "spec.terminationGracePeriodSeconds": whole,
    "spec.volumes": list,
    "status.phase": text,
  },
  PodDisruptionBudget: {
    "spec.minAvailable": countOrShare,
    "spec.maxUnavailable": countOrShare,
    "spec.selector": fields,
    "status.disruptionsAllowed": whole,
    "status.currentHealthy": whole,
    "status.desiredHealthy": whole,
    "status.expectedPods": whole,
  },
  Departure: { "spec.node": fields, "spec.departAt": time, "spec.deadlineAt": time },
};

interface FieldCheck {
  readonly path: string;
  readonly steps: readonly string[];
  readonly wanted: Expectation;
}

const checksByKind = new Map(
  Object.entries(byKind).map(([kind, own]): [string, readonly FieldCheck[]] => [
    kind,
    Object.entries({ ...everyObject, ...own }).map(([path, wanted]) => {
      return { path, wanted, steps: path.split(".") };
    }),
  ]),
);

/**
 * Refuses a file in which a field of an object is not what the API server would have written. In a
 * live cluster one odd field must not prevent a plan; in a file it is a mistake, and would change
 * the plan. Throws INPUT_INVALID with the file, the object and the field.
 */
export function checkObject({ file, object }: ReadObject): void {
  const checks = checksByKind.get(object.kind ?? "");
  if (checks === undefined) return;
  const { namespace, name } = object.metadata ?? {};
  if (name === undefined)
    refuse(file, `${object.kind}: metadata.name: found nothing, expected a text`);
  for (const { path, steps, wanted } of checks) {
    const value = valueAt(object, steps);
    // Absent, or written as `kubectl create --dry-run` writes absent values.
    if (value === undefined || value === null || wanted.isMet(value)) continue;
    const who = namespace === undefined ? name : `${namespace}/${name}`;
    const found = `found ${describeValue(value)}, expected ${wanted.what}`;
    refuse(file, `${object.kind} ${who}: ${path}: ${found}`);
  }
}

function refuse(file: string, mistake: string): never {
  throw new LastcallError("INPUT_INVALID", `Cannot read ${file}: ${mistake}`);
}
