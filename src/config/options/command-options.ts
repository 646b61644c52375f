import { clouds } from "../../cloud/clouds.ts";
import { andList } from "../../core/reason/word-list.ts";
import { cloudChoices } from "./cloud-options.ts";
import type { Option } from "./option.ts";

/** Options of `lastcall agent`, in addition to those of every command. */
export const agentOptions = [
  {
    name: "node-name",
    type: "text",
    value: "NAME",
    required: true,
    commands: ["agent"],
    help: "Name of the node that the agent runs on",
  },
  {
    name: "cloud",
    type: "choice",
    choices: cloudChoices,
    default: "auto",
    commands: ["agent"],
    help: "Cloud whose metadata service to watch; auto detects it",
  },
  {
    name: "metadata-url",
    type: "url",
    value: "URL",
    commands: ["agent"],
    help: "URL of the metadata service; default: the cloud's own",
  },
  {
    name: "fallback",
    type: "choice",
    choices: ["None", "Cordon", "Drain"],
    default: "None",
    commands: ["agent"],
    help: "What the agent does itself if no controller has acted on a notice within three seconds",
  },
  {
    name: "notice-address",
    type: "address",
    value: "ADDRESS",
    commands: ["agent"],
    help: "Address to serve /notice on, for applications on the node; default: not served",
  },
] as const satisfies readonly Option[];

const platforms = clouds.flatMap(({ audit }) => Object.keys(audit.platforms));
const usualPlatforms = clouds.flatMap(({ audit }) => audit.usualPlatforms);

/** Options of `audit`, and of other commands that share them. */
export const auditOptions = [
  {
    name: "platform",
    type: "text",
    value: "NAME",
    list: true,
    commands: ["audit"],
    help: `Platform to judge against: ${platforms.join(", ")}, kubelet:TOTAL/CRITICAL or kubelet:FILE; may be repeated; default: those of the nodes, or without nodes ${andList(usualPlatforms)}`,
  },
  {
    name: "platform",
    type: "text",
    value: "NAME",
    default: "gke",
    commands: ["setup"],
    parts: ["admission"],
    help: "With admission: platform whose grace budget workloads are checked against, named as for audit",
  },
  {
    name: "action",
    type: "choice",
    choices: ["Warn", "Deny", "Audit"],
    default: "Warn",
    commands: ["setup"],
    parts: ["admission"],
    help: "With admission: warn the user, deny the object, or record it in the audit log of the API server",
  },
  {
    name: "scope",
    type: "choice",
    choices: ["Named", "Possible"],
    default: "Named",
    commands: ["setup"],
    parts: ["admission"],
    help: "With admission: check workloads that name Spot nodes, or all that may run on them",
  },
  {
    name: "scope",
    type: "choice",
    choices: ["Named", "Possible"],
    commands: ["audit"],
    help: "Judge only workloads that name Spot nodes, or all that may run on them; default: Possible",
  },
  {
    name: "docs-url",
    type: "url",
    value: "URL",
    commands: ["audit"],
    help: "With -o sarif: address at which the docs folder is published, for the helpUri of each rule; default: none",
  },
  {
    name: "fail-on",
    type: "choice",
    choices: ["error", "warning", "info", "never"],
    default: "error",
    commands: ["audit"],
    help: "Lowest severity of a finding that makes the exit code 3",
  },
  {
    name: "ask-kubelets",
    type: "choice",
    choices: ["never", "direct", "proxy"],
    default: "never",
    commands: ["audit"],
    excludes: ["filename", "from"],
    help: "Read the grace budgets of a cluster's Spot nodes from their kubelets: direct on port 10250 (needs the permission nodes/configz), or by proxy through the API server (needs nodes/proxy, which amounts to a shell in every pod)",
  },
  {
    name: "kubelet-insecure-tls",
    type: "switch",
    default: "false",
    commands: ["audit"],
    needs: "ask-kubelets=direct",
    help: "With --ask-kubelets=direct: accept certificates not signed by the cluster's CA, at the risk of giving the token to an impostor",
  },
  {
    name: "template-path",
    type: "text",
    value: "KIND.GROUP=PATH",
    list: true,
    commands: ["audit"],
    help: "Path of the pod template in a custom resource, such as Sandbox.example.com=spec.template; may be repeated; Argo's Rollout and OpenKruise's kinds are built in",
  },
  {
    name: "baseline",
    type: "text",
    value: "FILE",
    commands: ["audit"],
    help: "File of known and accepted findings: a saved report in JSON",
  },
  {
    name: "audit-every",
    type: "duration",
    value: "DURATION",
    default: "6h",
    commands: ["run"],
    help: "How often the leader audits the workloads of the cluster; 0 turns it off, and needs no permission to list them",
  },
] as const satisfies readonly Option[];

/** What `simulate` runs, besides the options that it shares with `demo`. */
export const simulateOptions = [
  {
    name: "scenario",
    type: "choice",
    choices: ["pool", "spread", "limit", "storm"],
    commands: ["simulate"],
    help: "Built-in scenario, as listed by --list; default: pool",
  },
  {
    name: "policy",
    type: "text",
    value: "FILE",
    list: true,
    commands: ["simulate"],
    help: "Policies to simulate; may be repeated; default: that of the demo",
  },
  {
    name: "compare",
    type: "switch",
    default: "false",
    commands: ["simulate"],
    help: "Simulate each file of --policy on its own, with the same interruptions",
  },
  {
    name: "runs",
    type: "integer",
    value: "N",
    minimum: 1,
    maximum: 1000,
    default: "1",
    commands: ["simulate"],
    help: "Number of runs, with the seeds --seed, --seed + 1 and so on",
  },
  {
    name: "list",
    type: "switch",
    default: "false",
    commands: ["simulate"],
    help: "List the built-in scenarios instead",
  },
] as const satisfies readonly Option[];

/** How the board is served, and where it finds past departures. */
export const boardOptions = [
  {
    name: "address",
    type: "address",
    value: "ADDRESS",
    default: "127.0.0.1:8087",
    commands: ["board", "demo"],
    excludes: ["tui", "headless"],
    help: "Loopback address to serve the board on; if its port is taken, one of the next is used",
  },
  {
    name: "open",
    type: "switch",
    default: "false",
    commands: ["board", "demo"],
    help: "Open the board in a browser",
  },
  {
    name: "tui",
    type: "switch",
    default: "false",
    commands: ["board"],
    help: "Show the board in this terminal instead of serving it for a browser",
  },
  {
    name: "history",
    type: "text",
    value: "FILE",
    commands: ["board"],
    help: "File that keeps ended departures, a JSON object a line; default: those of the last three days, as the cluster keeps them",
  },
  {
    name: "prometheus",
    type: "url",
    value: "URL",
    commands: ["board"],
    help: "Prometheus that scrapes the controller, whose counters show the outcomes of 30 days; default: none",
  },
] as const satisfies readonly Option[];

/** What `migrate` reads, and where it writes. */
export const migrateOptions = [
  {
    name: "output",
    short: "o",
    type: "choice",
    choices: ["yaml", "json"],
    default: "yaml",
    commands: ["migrate"],
    help: "Output format of the policies",
  },
  {
    name: "values",
    type: "text",
    value: "FILE",
    commands: ["migrate"],
    help: "Values file of the other tool's chart to read, instead of what runs in the cluster",
  },
  {
    name: "manifest",
    type: "text",
    value: "FILE",
    commands: ["migrate"],
    help: "Manifest of the other tool to read, instead of what runs in the cluster",
  },
  {
    name: "values-out",
    type: "text",
    value: "FILE",
    commands: ["migrate"],
    help: "Write the values of Lastcall's chart, with the policies, to this file",
  },
] as const satisfies readonly Option[];
