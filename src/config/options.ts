import { agentOptions } from "./agent-options.ts";
import { auditOptions } from "./audit-options.ts";
import { awsOptions } from "./aws-options.ts";
import { azureOptions } from "./azure-options.ts";
import { migrateOptions } from "./migrate-options.ts";
import type { CamelCase, Command, Option, ValueOf } from "./option.ts";
import { setupOptions } from "./setup-options.ts";

/** The commands that a person starts, without audit, which prints in more forms. */
const briefCommands = [
  "plan",
  "drain-plan",
  "depart",
  "doctor",
  "demo",
  "setup",
  "version",
] as const;

/**
 * Every option of every command. Names and defaults of `run`, `agent`, `plan`, `drain-plan`,
 * `audit` and `demo` are what others script against: add, do not change.
 *
 * No option may be called `port` or end in `-port`, `-service-host` or the like: Kubernetes sets
 * `LASTCALL_PORT` and its kin in every pod beside a Service named `lastcall`.
 */
export const options = [
  {
    name: "kubeconfig",
    type: "text",
    value: "FILE",
    commands: "all",
    help: "The kubeconfig file; absent: $KUBECONFIG, the pod's own account, ~/.kube/config",
  },
  {
    name: "context",
    type: "text",
    value: "NAME",
    commands: "all",
    help: "The context of the kubeconfig; absent: its current one",
  },
  {
    name: "namespace",
    short: "n",
    type: "text",
    value: "NAME",
    commands: "all",
    help: "The namespace, where one is meant; absent: that of the context",
  },
  {
    name: "output",
    short: "o",
    type: "choice",
    choices: ["table", "json", "yaml"],
    default: "table",
    commands: ["run", "agent", ...briefCommands],
    help: "The form of what is printed",
  },
  {
    name: "output",
    short: "o",
    type: "choice",
    choices: ["table", "json", "yaml", "sarif", "github"],
    default: "table",
    commands: ["audit"],
    help: "The form of what is printed; github writes annotations for its checks",
  },
  {
    name: "log-level",
    type: "choice",
    choices: ["debug", "info", "warn", "error"],
    default: "info",
    commands: "all",
    help: "What is logged at the least; debug also shows stack traces",
  },
  {
    name: "log-format",
    type: "choice",
    choices: ["json", "text"],
    default: "json",
    commands: ["run", "agent"],
    help: "The form of the log",
  },
  {
    name: "log-format",
    type: "choice",
    choices: ["json", "text"],
    default: "text",
    commands: ["audit", "migrate", ...briefCommands],
    help: "The form of the log",
  },
  {
    name: "quiet",
    short: "q",
    type: "switch",
    default: "false",
    commands: "all",
    help: "Nothing but data and errors: no progress, no hints",
  },
  {
    name: "config",
    type: "text",
    value: "FILE",
    commands: "all",
    help: "A YAML file of options by their names; flags and the environment beat it",
  },
  {
    name: "filename",
    short: "f",
    type: "text",
    value: "POLICY.yaml",
    list: true,
    commands: ["run", "plan", "drain-plan"],
    help: "A file of policies, instead of those of the cluster; may be repeated",
  },
  {
    name: "filename",
    short: "f",
    type: "text",
    value: "FILE|DIR|-",
    list: true,
    commands: ["audit"],
    help: "Manifests to judge; - reads standard input; may be repeated",
  },
  {
    name: "from",
    type: "text",
    value: "FILE|DIR|-",
    list: true,
    commands: ["plan", "drain-plan", "audit"],
    help: "What kubectl get … -o json wrote, instead of the cluster; may be repeated",
  },
  {
    name: "health-address",
    type: "address",
    value: "ADDRESS",
    default: ":8080",
    commands: ["run", "agent"],
    help: "Where /healthz and /readyz are served",
  },
  {
    name: "metrics-address",
    type: "address",
    value: "ADDRESS",
    default: ":9101",
    commands: ["run", "agent"],
    help: "Where /metrics is served",
  },
  {
    name: "metrics-cert-file",
    type: "text",
    value: "FILE",
    commands: ["run", "agent"],
    help: "Serves /metrics by TLS with this certificate in PEM, which is read again when it is replaced",
  },
  {
    name: "metrics-key-file",
    type: "text",
    value: "FILE",
    commands: ["run", "agent"],
    help: "The key of --metrics-cert-file in PEM",
  },
  {
    name: "leader-elect",
    type: "switch",
    default: "true",
    commands: ["run"],
    help: "Acts only while holding the Lease, so that of several replicas one acts",
  },
  {
    name: "dry-run",
    type: "switch",
    default: "false",
    commands: ["run", "agent", "depart"],
    help: "Decides and says everything, and writes nothing",
  },
  {
    name: "placeholder-image",
    type: "text",
    value: "IMAGE",
    commands: ["run"],
    help: "What runs in the pods that keep room; absent: registry.k8s.io/pause:3.10",
  },
  {
    name: "gcp-endpoint",
    type: "url",
    value: "URL",
    commands: ["run", "doctor"],
    help: "The Compute Engine server, to which /compute/v1/… is appended; absent: Google's",
  },
  {
    name: "gcp-preemption-poll",
    type: "duration",
    value: "DURATION",
    commands: ["run", "setup"],
    help: "How often to ask each zone of Compute Engine for preemptions, such as 10s; absent: not at all",
  },
  ...awsOptions,
  ...azureOptions,
  ...agentOptions,
  {
    name: "at",
    type: "instant",
    value: "RFC3339",
    commands: ["plan", "drain-plan"],
    help: "The instant to plan at; absent: now",
  },
  {
    name: "strict",
    type: "switch",
    default: "false",
    commands: ["plan"],
    help: "Exits with 3 when the plan is infeasible",
  },
  {
    name: "notice",
    type: "duration",
    value: "DURATION",
    commands: ["drain-plan"],
    help: "The drain under a notice of this length, such as 120s; absent: the planned drain",
  },
  {
    name: "at",
    type: "instant",
    value: "RFC3339",
    commands: ["depart"],
    help: "When to leave; absent: now",
  },
  {
    name: "by",
    type: "instant",
    value: "RFC3339",
    commands: ["depart"],
    help: "The deadline after which the machine may be gone",
  },
  ...auditOptions,
  {
    name: "fail-on",
    type: "choice",
    choices: ["warn", "fail"],
    default: "fail",
    commands: ["doctor"],
    help: "The lightest answer of a check that makes the exit code 3",
  },
  {
    name: "seed",
    type: "integer",
    value: "N",
    minimum: 0,
    maximum: 4_294_967_295,
    commands: ["demo"],
    help: "The seed of all chance: the same seed, the same run; absent: a new one, which is printed",
  },
  {
    name: "nodes",
    type: "integer",
    value: "N",
    minimum: 1,
    maximum: 5000,
    default: "18",
    commands: ["demo"],
    help: "How many nodes",
  },
  {
    name: "speed",
    type: "number",
    value: "N",
    minimum: 0.1,
    maximum: 100_000,
    default: "60",
    commands: ["demo"],
    help: "How many times faster than the clock time passes",
  },
  {
    name: "for",
    type: "duration",
    value: "DURATION",
    commands: ["demo"],
    help: "Ends after this long by the clock; absent: when interrupted",
  },
  {
    name: "headless",
    type: "switch",
    default: "false",
    commands: ["demo"],
    help: "As fast as it goes, without a board, and prints what came of it",
  },
  {
    name: "hours",
    type: "number",
    value: "N",
    minimum: 0.1,
    maximum: 100_000,
    default: "48",
    commands: ["demo"],
    help: "With --headless: how many hours of the model to run",
  },
  {
    name: "apply",
    type: "switch",
    default: "false",
    commands: ["setup", "migrate"],
    help: "Does it, instead of printing it",
  },
  ...setupOptions,
  ...migrateOptions,
] as const satisfies readonly Option[];

type Listed = (typeof options)[number];

type OptionFor<Of extends Command, Kind extends Listed = Listed> = Kind extends {
  readonly commands: "all";
}
  ? Kind
  : Kind extends { readonly commands: readonly (infer Named)[] }
    ? Of extends Named
      ? Kind
      : never
    : never;

/** What a command's options are once they are resolved, by field name. */
export type OptionsOf<Of extends Command> = {
  readonly [Kind in OptionFor<Of> as CamelCase<Kind["name"]>]: ValueOf<Kind>;
};

/** The options that a command takes, in the order of the list. */
export function optionsFor(command: Command): readonly Option[] {
  return (options as readonly Option[]).filter(
    (option) => option.commands === "all" || option.commands.includes(command),
  );
}
