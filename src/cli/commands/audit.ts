import { audit, problemsOf } from "../../audit/audit.ts";
import { auditTable, githubAnnotations, sarifLog } from "../../audit/audit-output.ts";
import {
  loadDocument,
  loadPlatform,
  type ManifestFiles,
  type ReadManifests,
  readManifests,
} from "../../audit/input/read-manifests.ts";
import {
  type ManifestSource,
  parseTemplatePath,
  type TemplatePath,
} from "../../audit/objects/manifest.ts";
import type { SpotScope } from "../../audit/objects/spot-scope.ts";
import type { Platform } from "../../audit/platform.ts";
import {
  type AuditReport,
  type Baseline,
  readBaseline,
  type Severity,
  severities,
} from "../../audit/report.ts";
import { printYaml } from "../../config/yaml-text.ts";
import type { Clock } from "../../contracts/clock.ts";
import type { KubeApi } from "../../contracts/kube-api.ts";
import type { ShutdownGroup } from "../../core/drain-plan/drain-order.ts";
import { escapedJson } from "../../core/json/printable-text.ts";
import { counted } from "../../core/reason/counted.ts";
import { LastcallError } from "../../errors.ts";
import type { KubeAccess } from "../../kube/access/kube-access.ts";
import { connect } from "../cluster/connect.ts";
import {
  type AskKubelet,
  type LiveCluster,
  type ObjectSelection,
  proxiedKubelet,
  readCluster,
} from "../cluster/read-cluster.ts";
import type { CommandRun } from "../command-line/command.ts";
import { nodeFiles } from "../input/read-objects.ts";
import { version } from "./version.ts";

/** The parsed command line of `lastcall audit`. */
export interface AuditCommand {
  /** Manifests: files, directories or `-`. */
  readonly files: readonly string[];
  /** Recordings of a cluster, as `kubectl get … -o json` wrote them; read like manifests. */
  readonly from: readonly string[];
  /** As typed: `gke`, `kubelet:30s/15s`, `kubelet:FILE`, … */
  readonly platforms: readonly string[];
  readonly failOn: Severity | "never";
  readonly scope?: SpotScope | undefined;
  readonly output: "table" | "json" | "yaml" | "sarif" | "github";
  readonly namespace?: string | undefined;
  /** A saved report whose findings are accepted. */
  readonly baseline?: string | undefined;
  /** As typed: `Rollout.argoproj.io=spec.template`. */
  readonly templatePaths?: readonly string[] | undefined;
  readonly quiet?: boolean | undefined;
  /** For SARIF: the version of this program, and where its documentation is. */
  readonly version: string;
  readonly docsUrl?: string | undefined;
}

/** The environment of the command. */
export interface AuditIo extends ManifestFiles {
  stdout(text: string): void;
  stderr(text: string): void;
  /**
   * Whether standard output is a terminal: long tables are then shortened and long work shows
   * progress.
   */
  readonly isTty: boolean;
  /** Whether to use colours: on a terminal without `NO_COLOR`. */
  readonly colour: boolean;
  /** Reads the cluster of the kubeconfig; called only if no file is named. */
  readonly readCluster?: ((wanted: ObjectSelection) => Promise<LiveCluster>) | undefined;
}

/** What fits on one screen of a terminal. */
const screenRows = 18;

/** How many problems of the input are printed before the rest is only counted. */
const problemLimit = 20;

/**
 * Runs the audit and prints its report. Resolves to the exit code: 0, or 3 if a finding is at or
 * over `failOn`. Throws LastcallError: INPUT_INVALID, INPUT_UNREADABLE and USAGE (exit 2) before
 * anything is printed to stdout, and what `readCluster` throws.
 */
export async function runAudit(command: AuditCommand, io: AuditIo): Promise<number> {
  const platforms: Platform[] = [];
  for (const text of command.platforms) platforms.push(await loadPlatform(text, io));
  const baseline = await loadBaseline(command.baseline, io);
  const templatePaths = (command.templatePaths ?? []).map(parseTemplatePath);
  const input = await loadInput({ ...command, templatePaths }, io);
  const report = audit({
    sources: input.sources,
    templatePaths,
    readBudgets: input.readBudgets,
    platforms,
    scope: command.scope,
    baseline,
    namespace: command.namespace,
  });
  if (command.quiet !== true) {
    for (const note of [...input.notes, ...report.notes]) io.stderr(`${note}\n`);
  }
  io.stdout(render(report, { command, io }));
  return reaches(report, command.failOn) ? 3 : 0;
}

async function loadBaseline(path: string | undefined, io: AuditIo): Promise<Baseline | undefined> {
  if (path === undefined) return undefined;
  const { json, place } = await loadDocument(path, io);
  return readBaseline(json, place);
}

type InputCommand = Omit<AuditCommand, "templatePaths"> & {
  readonly templatePaths: readonly TemplatePath[];
};

interface AuditInput {
  readonly sources: readonly ManifestSource[];
  readonly notes: readonly string[];
  readonly readBudgets?: ReadonlyMap<string, readonly ShutdownGroup[]> | undefined;
}

async function loadInput(command: InputCommand, io: AuditIo): Promise<AuditInput> {
  if (command.files.length + command.from.length === 0) return loadCluster(command, io);
  const progress = io.isTty && command.quiet !== true;
  let announced = 0;
  const onFile = (filesSoFar: number) => {
    if (!progress || filesSoFar - announced < 500) return;
    announced = filesSoFar;
    io.stderr(`Read ${filesSoFar} files\n`);
  };
  const read = await readManifests(command.files, { files: io, onFile });
  const recorded = await readManifests(command.from, { files: io, onFile });
  const fromServer = recorded.sources.map((source) => ({ ...source, origin: "Recorded" as const }));
  const sources = [...read.sources, ...fromServer];
  const unread: string[] = [read, recorded].flatMap(({ unreadable, problems }) => [
    ...unreadable,
    ...problems,
  ]);
  unread.push(...emptyInputs(read.empty, "-", "manifests"));
  unread.push(...emptyInputs(recorded.empty, undefined, "the output of kubectl get -o json"));
  // Users who have to fix files want to see every problem at once.
  if (unread.length > 0) {
    const { namespace, templatePaths } = command;
    refuse([...unread, ...problemsOf({ sources, namespace, templatePaths })]);
  }
  const notes = [read, recorded].flatMap(notesOf);
  // A check that passes because it saw nothing is worse than none: a wrong path would be green.
  // An empty list is not nothing: a cluster may have no workloads.
  const skipped = [read, recorded].flatMap(({ empty, others }) => [...empty, ...others]);
  if (sources.length === 0 && skipped.length > 0) {
    const where = [...command.files, ...command.from].join(", ");
    refuse([`Cannot audit ${where}: found no Kubernetes objects, expected manifests`, ...notes]);
  }
  return { sources, notes };
}

/** An empty input may be the pipe of a helm or kubectl that failed: the pipeline must not pass. */
function emptyInputs(
  empty: ReadManifests["empty"],
  only: string | undefined,
  wanted: string,
): readonly string[] {
  return empty
    .filter(({ kind, path }) => kind === "File" && (only === undefined || path === only))
    .map(({ path }) => {
      const file = path === "-" ? "standard input" : path;
      return `Cannot read ${file}: found nothing, expected ${wanted}`;
    });
}

/** Input with nothing to audit is skipped, and reported. */
function notesOf({ empty, others, notes }: ReadManifests): readonly string[] {
  const folders = empty.filter(({ kind }) => kind === "Folder");
  return [
    ...folders.map(({ path }) => `${path} contains no .yaml, .yml or .json files`),
    ...others.map((at) => `${at} lacks apiVersion or kind, so it is not a Kubernetes object`),
    ...notes,
  ];
}

/** Throws with the first of the problems. */
function refuse(problems: readonly string[]): never {
  const shown = problems.slice(0, problemLimit);
  const more = problems.length - shown.length;
  const rest = more > 0 ? [`… and ${counted(more, "more problem")}`] : [];
  throw new LastcallError("INPUT_INVALID", [...shown, ...rest].join("\n"));
}

async function loadCluster(command: InputCommand, io: AuditIo): Promise<AuditInput> {
  if (io.readCluster === undefined) {
    throw new LastcallError(
      "USAGE",
      "Cannot audit: there is nothing to read, pass manifests with -f or a cluster with --kubeconfig",
    );
  }
  const { namespace, templatePaths } = command;
  const { objects, readBudgets, notes } = await io.readCluster({ namespace, templatePaths });
  return { sources: objects.map((json) => ({ json, origin: "Recorded" })), notes, readBudgets };
}

function render(
  report: AuditReport,
  { command, io }: { readonly command: AuditCommand; readonly io: AuditIo },
): string {
  switch (command.output) {
    case "json":
      return `${escapedJson(report, 2)}\n`;
    case "yaml":
      return printYaml(report);
    case "sarif":
      return `${escapedJson(sarifLog(report, command), 2)}\n`;
    case "github":
      return githubAnnotations(report);
    case "table":
      return auditTable(report, {
        colour: io.colour ? "On" : "Off",
        rows: io.isTty ? screenRows : undefined,
      });
  }
}

function reaches(report: AuditReport, failOn: Severity | "never"): boolean {
  if (failOn === "never") return false;
  const limit = severities.indexOf(failOn);
  return report.findings.some((finding) => severities.indexOf(finding.severity) <= limit);
}

/** Audits manifests, a recording of a cluster, or, if no file is named, the live cluster. */
export const runAuditCommand: CommandRun<"audit"> = async ({ options, io }) =>
  runAudit(
    {
      files: options.filename,
      from: options.from,
      platforms: options.platform,
      failOn: options.failOn,
      scope: options.scope,
      docsUrl: options.docsUrl,
      output: options.output,
      namespace: options.namespace,
      baseline: options.baseline,
      templatePaths: options.templatePath,
      quiet: options.quiet,
      version,
    },
    {
      ...nodeFiles(io.files.stdinBytes()),
      stdout: io.out,
      stderr: io.err,
      isTty: io.isTerminal,
      colour: io.colour,
      readCluster: async (wanted) => {
        const { api, access, close } = await connect(options, io);
        try {
          const askKubelet = await kubeletsOf(options, { api, access, clock: io.clock });
          return await readCluster({ api, ...wanted, askKubelet, signal: io.signal });
        } finally {
          close();
        }
      },
    },
  );

/** How to ask kubelets for their budgets; undefined if they are not asked. */
async function kubeletsOf(
  { askKubelets, kubeletInsecureTls }: Parameters<typeof runAuditCommand>[0]["options"],
  {
    api,
    access,
    clock,
  }: { readonly api: KubeApi; readonly access: KubeAccess; readonly clock: Clock },
): Promise<AskKubelet | undefined> {
  if (askKubelets === "never") return undefined;
  if (askKubelets === "proxy") return proxiedKubelet(api);
  const { directKubelet } = await import("../cluster/direct-kubelet.ts");
  const certificate = kubeletInsecureTls ? "Unverified" : "Verified";
  return directKubelet(access, { clock, certificate });
}
