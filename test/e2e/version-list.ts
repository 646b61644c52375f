/** The Kubernetes versions that are claimed, and what is tried on the oldest and the newest. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { kubernetesVersion } from "../controlplane/build.ts";

/** Each has its requirements in test/controlplane/versions. */
export const triedVersions = ["1.30", "1.37"] as const;

export interface TriedFile {
  /** Of `test/e2e/NAME.e2e.test.ts`. */
  readonly file: string;
  readonly shows: string;
}

export const triedFiles: readonly TriedFile[] = [
  { file: "control-plane", shows: "budgets, evictions and tokens work as the tests assume" },
  { file: "policy-corpus", shows: "policies are validated by the CRD's rules, in CEL" },
  { file: "rotation", shows: "nine nodes leave one after another as planned" },
  { file: "signals", shows: "the notices of every cloud drain their nodes" },
  { file: "burst", shows: "twenty notices at once drain their nodes in time" },
  { file: "agent", shows: "an agent reports a notice, also after an outage of the API server" },
  { file: "agent-rights", shows: "an agent's token is limited to its own node" },
  { file: "agent-departure", shows: "an agent's Departures are limited to its own node" },
  { file: "agent-marks", shows: "an agent with a fallback lifts no cordon of a person" },
  { file: "agent-fallback", shows: "an agent's fallback cordons and drains its own node only" },
  { file: "pod-security", shows: "installed pods, and the controller's right to create pods" },
  { file: "restart-owner", shows: "the right to restart owners" },
  { file: "setup-rights", shows: "the documented rights of those who set it up suffice" },
  { file: "admission", shows: "`lastcall admission` as an admission policy" },
  { file: "spot-ready", shows: "the audit as a condition, as metrics and by command" },
  { file: "doctor", shows: "`lastcall doctor` finds each fault, and none without one" },
];

/** What a run of one version found. */
export interface TriedVersion {
  /** With its patch, such as v1.30.14. */
  readonly version: string;
  /** How many tests a file has, by file; only files all of whose tests passed. */
  readonly passed: Readonly<Record<string, number>>;
}

export const triedVersionsFile: string = join(import.meta.dirname, "versions.json");

/** The results of the last run of each version. */
export function readTriedVersions(): readonly TriedVersion[] {
  return JSON.parse(readFileSync(triedVersionsFile, "utf8")) as readonly TriedVersion[];
}

/** The version with its patch, as test/controlplane pins it. */
export function patchOf(version: string): string {
  return kubernetesVersion(join("versions", `${version}.mod`));
}

/** A table in Markdown: a row for each file, a column for each version. */
export function versionTable(tried: readonly TriedVersion[]): string {
  const row = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  const rows = triedFiles.map(({ file, shows }) => {
    const counts = tried.map(({ passed: { [file]: count } }) => {
      return count === undefined ? "not shown" : `${count} passed`;
    });
    return row([shows, `\`${file}\``, ...counts]);
  });
  const head = row(["shown", "tests", ...tried.map(({ version }) => version)]);
  return [head, row(["---", "---", ...tried.map(() => "---")]), ...rows].join("\n");
}
