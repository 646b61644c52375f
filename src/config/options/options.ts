import { cloudOptions, setupOptions } from "./cloud-options.ts";
import {
  agentOptions,
  auditOptions,
  boardOptions,
  migrateOptions,
  simulateOptions,
} from "./command-options.ts";
import { operatorOptions } from "./operator-options.ts";
import type { CamelCase, Command, Option, ValueOf } from "./option.ts";

/** The commands that a person runs, without plan and audit, which have more output formats. */
const briefCommands = [
  ...(["drain-plan", "depart", "hold", "freeze", "doctor", "board", "setup", "version"] as const),
] as const;

/**
 * Every option of every command. Scripts depend on the names and defaults of `run`, `agent`,
 * `plan`, `drain-plan`, `audit` and `demo`: add, do not change. No option may be called `port` or
 * end in `-port`, `-service-host` or the like: Kubernetes sets `LASTCALL_PORT` and its relatives in
 * every pod of a namespace with a Service named `lastcall`.
 */
export const options = [
  {
    name: "kubeconfig",
    type: "text",
    value: "FILE",
    commands: "all",
    help: "Path of the kubeconfig file; default: $KUBECONFIG, then the pod's service account, then ~/.kube/config",
  },
  {
    name: "context",
    type: "text",
    value: "NAME",
    commands: "all",
    help: "Context of the kubeconfig to use; default: the current context",
  },
  {
    name: "namespace",
    short: "n",
    type: "text",
    value: "NAME",
    commands: "all",
    help: "Namespace, for commands that need one; default: that of the context, for audit and doctor all of them",
  },
  {
    name: "output",
    short: "o",
    type: "choice",
    choices: ["table", "json", "yaml"],
    default: "table",
    commands: ["run", "agent", "simulate", ...briefCommands],
    help: "Output format",
  },
  {
    name: "output",
    short: "o",
    type: "choice",
    choices: ["table", "json", "yaml"],
    default: "table",
    commands: ["demo"],
    needs: "headless",
    help: "With --headless: output format of the report",
  },
  {
    name: "output",
    short: "o",
    type: "choice",
    choices: ["table", "wide", "json", "yaml"],
    default: "table",
    commands: ["plan"],
    help: "Output format; wide adds the exact times to the table",
  },
  {
    name: "output",
    short: "o",
    type: "choice",
    choices: ["table", "json", "yaml", "sarif", "github"],
    default: "table",
    commands: ["audit"],
    help: "Output format; github prints annotations for GitHub checks",
  },
  {
    name: "log-level",
    type: "choice",
    choices: ["debug", "info", "warn", "error"],
    default: "info",
    commands: "all",
    help: "Minimum log level; debug adds stack traces to errors",
  },
  {
    name: "log-format",
    type: "choice",
    choices: ["json", "text"],
    default: "json",
    commands: ["run", "agent"],
    help: "Log format",
  },
  {
    name: "log-format",
    type: "choice",
    choices: ["json", "text"],
    default: "text",
    commands: ["audit", "migrate", "plan", "demo", "simulate", ...briefCommands],
    help: "Log format",
  },
  {
    name: "quiet",
    short: "q",
    type: "switch",
    default: "false",
    commands: "all",
    help: "Print only data and errors, no progress or hints",
  },
  {
    name: "config",
    type: "text",
    value: "FILE",
    commands: "all",
    help: "YAML file of options by name; flags and environment variables take precedence",
  },
  {
    name: "filename",
    short: "f",
    type: "text",
    value: "FILE|DIR|-",
    list: true,
    commands: ["run", "plan", "drain-plan"],
    help: "Policies to use instead of those in the cluster; may be repeated",
  },
  {
    name: "filename",
    short: "f",
    type: "text",
    value: "FILE|DIR|-",
    list: true,
    commands: ["audit"],
    help: "Manifests to audit; - reads standard input; may be repeated",
  },
  {
    name: "from",
    type: "text",
    value: "FILE|DIR|-",
    list: true,
    commands: ["plan", "drain-plan", "audit"],
    help: "Output of kubectl get -o json or yaml to read instead of the cluster; may be repeated",
  },
  {
    name: "health-address",
    type: "address",
    value: "ADDRESS",
    default: ":8080",
    commands: ["run", "agent"],
    help: "Address to serve /healthz and /readyz on",
  },
  {
    name: "metrics-address",
    type: "address",
    value: "ADDRESS",
    default: ":9101",
    commands: ["run", "agent"],
    help: "Address to serve /metrics on",
  },
  {
    name: "metrics-cert-file",
    type: "text",
    value: "FILE",
    commands: ["run", "agent"],
    help: "Serve /metrics over TLS with this PEM certificate; it is reloaded when it changes",
  },
  {
    name: "metrics-key-file",
    type: "text",
    value: "FILE",
    commands: ["run", "agent"],
    help: "PEM key of --metrics-cert-file",
  },
  {
    name: "leader-elect",
    type: "switch",
    default: "true",
    commands: ["run"],
    help: "Act only while holding the Lease, so that one of several replicas acts",
  },
  {
    name: "dry-run",
    type: "switch",
    default: "false",
    commands: ["run"],
    help: "Decide and report, but change nothing; Events are written as for a policy in dry run",
  },
  {
    name: "dry-run",
    type: "switch",
    default: "false",
    commands: ["agent"],
    help: "Report in the log only, without a Departure",
  },
  {
    name: "dry-run",
    type: "switch",
    default: "false",
    commands: ["depart", "hold", "freeze"],
    help: "Say what it would do, but change nothing",
  },
  {
    name: "prefer-no-schedule",
    type: "duration",
    value: "DURATION",
    commands: ["run"],
    help: "How long before its departure to taint a node so that the scheduler prefers others, such as 30m; default: never",
  },
  {
    name: "remove-failed-pods",
    type: "switch",
    default: "true",
    commands: ["run"],
    help: "Remove the Failed pods that a machine left behind whose name another one has taken",
  },
  {
    name: "placeholder-image",
    type: "text",
    value: "IMAGE",
    commands: ["run"],
    help: "Image of the placeholder pods, which reserve capacity; default: registry.k8s.io/pause:3.10",
  },
  {
    name: "action-hosts",
    type: "text",
    value: "HOSTS",
    commands: ["run"],
    help: "Hosts that policies may name, in actions and in gates.alerts.url, with commas between: host, host:port or *.domain; loopback, link-local and metadata addresses only where they are named themselves; default: none",
  },
  ...agentOptions,
  ...cloudOptions,
  ...simulateOptions,
  {
    name: "at",
    type: "time",
    value: "TIME",
    commands: ["plan", "drain-plan"],
    help: "Time to plan at: 22:00 in this computer's time zone, 2h from now, or an RFC 3339 instant; default: now",
  },
  {
    name: "strict",
    type: "switch",
    default: "false",
    commands: ["plan"],
    help: "Exit with 3 if the plan is infeasible, or a policy selects no node or cannot be read",
  },
  {
    name: "notice",
    type: "duration",
    value: "DURATION",
    shortest: "1s",
    commands: ["drain-plan"],
    help: "Plan the drain for a notice of this length, such as 120s; default: a planned drain without a notice",
  },
  ...operatorOptions,
  ...auditOptions,
  {
    name: "fail-on",
    type: "choice",
    choices: ["warn", "fail"],
    default: "fail",
    commands: ["doctor"],
    help: "Lowest status of a check that makes the exit code 3",
  },
  ...boardOptions,
  {
    name: "seed",
    type: "integer",
    value: "N",
    minimum: 0,
    maximum: 4_294_967_295,
    // Its run is in the middle of thirty: see docs/demo.md.
    default: "3",
    commands: ["demo", "simulate"],
    help: "Seed of all random choices: the same seed gives the same run",
  },
  {
    name: "nodes",
    type: "integer",
    value: "N",
    minimum: 1,
    maximum: 5000,
    default: "18",
    commands: ["demo"],
    help: "Number of nodes",
  },
  {
    name: "speed",
    type: "number",
    value: "N",
    minimum: 0.1,
    maximum: 100_000,
    default: "60",
    commands: ["demo"],
    excludes: ["headless"],
    help: "How many times faster than real time the model runs",
  },
  {
    name: "for",
    type: "duration",
    value: "DURATION",
    shortest: "1s",
    commands: ["demo"],
    excludes: ["headless"],
    help: "End after this much real time; default: when interrupted",
  },
  {
    name: "headless",
    type: "switch",
    default: "false",
    commands: ["demo"],
    help: "Run as fast as possible without a board, and print a report",
  },
  {
    name: "hours",
    type: "number",
    value: "N",
    minimum: 0.1,
    maximum: 100_000,
    default: "48",
    commands: ["demo"],
    needs: "headless",
    help: "With --headless: number of hours to simulate",
  },
  {
    name: "apply",
    type: "switch",
    default: "false",
    commands: ["setup", "migrate"],
    help: "Apply it instead of printing it",
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

/** The resolved options of a command, by field name. */
export type OptionsOf<Of extends Command> = {
  readonly [Kind in OptionFor<Of> as CamelCase<Kind["name"]>]: ValueOf<Kind>;
};

/** The options of a command, in the order of the list. */
export function optionsFor(command: Command): readonly Option[] {
  return (options as readonly Option[]).filter(
    (option) => option.commands === "all" || option.commands.includes(command),
  );
}
