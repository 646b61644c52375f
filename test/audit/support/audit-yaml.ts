import { audit } from "../../../src/audit/audit.ts";
import { type ManifestFiles, readManifests } from "../../../src/audit/input/read-manifests.ts";
import { type Platform, parsePlatform } from "../../../src/audit/platform.ts";
import type { AuditReport, Baseline } from "../../../src/audit/report.ts";

/** A platform by its argument; for those that need no file. */
export function platform(name: string): Platform {
  const request = parsePlatform(name);
  if (request.kind !== "Ready") throw new Error(`${name} needs a file`);
  return request.platform;
}

/** Files that exist only in a table: a path ending in a slash does not exist here. */
export function tableOfFiles(texts: Readonly<Record<string, string>>): ManifestFiles {
  const read = async (path: string, limitBytes: number) => {
    const text = texts[path];
    if (text === undefined) return { kind: "Unreadable", why: "it does not exist" } as const;
    if (text.length > limitBytes) return { kind: "TooLarge", sizeBytes: text.length } as const;
    return { kind: "Text", text } as const;
  };
  return {
    readFile: read,
    stdin: (limitBytes) => read("-", limitBytes),
    readDir: async (path) => entriesBelow(path, Object.keys(texts)),
  };
}

function entriesBelow(path: string, files: readonly string[]) {
  const root = path.replace(/\/$/, "");
  const below = files.filter((file) => file.startsWith(`${root}/`));
  if (below.length === 0) return undefined;
  const names = new Map<string, "File" | "Directory">();
  for (const file of below) {
    const [name = "", ...rest] = file.slice(root.length + 1).split("/");
    names.set(name, rest.length > 0 ? "Directory" : "File");
  }
  return [...names].map(([name, kind]) => ({ name, kind }));
}

/** Audits one YAML file; fails if it cannot be read. */
export async function auditYaml(
  yaml: string,
  options: {
    readonly platforms?: readonly string[];
    readonly baseline?: Baseline;
    readonly origin?: "Written" | "Recorded";
  } = {},
): Promise<AuditReport> {
  const files = tableOfFiles({ "web.yaml": yaml });
  const { sources, problems } = await readManifests(["web.yaml"], { files });
  if (problems.length > 0) throw new Error(problems.join("\n"));
  const platforms = (options.platforms ?? []).map(platform);
  const placed = sources.map((source) => ({ ...source, origin: options.origin }));
  return audit({ sources: placed, platforms, baseline: options.baseline });
}

/** A Deployment in one line of flow YAML; `pod` and `spec` are the contents of those maps. */
export function deployment(options: {
  readonly name?: string;
  readonly spec?: string;
  readonly pod?: string;
  readonly labels?: string;
}): string {
  const { name = "web", spec = "replicas: 3", pod = "restartPolicy: Always" } = options;
  const labels = options.labels ?? `app: ${name}`;
  return `apiVersion: apps/v1
kind: Deployment
metadata: {name: ${name}}
spec: {${spec}, template: {metadata: {labels: {${labels}}}, spec: {${pod}, containers: [{name: main, image: main}]}}}
`;
}
