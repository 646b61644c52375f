/**
 * Which folder may import which, and the only files that may import a package. ARCHITECTURE.md has
 * the same table; anything that is not listed fails.
 */
import { readdirSync } from "node:fs";
import { dirname, join } from "node:path/posix";
import { report, root, type SourceFile, sourceFiles } from "./source-tree.ts";

// The facts of every cloud are data, and a part of what core decides with.
const everywhere = ["core", "errors", "cloud/facts"];

/** The folders of what clouds have in common; every other folder in src/cloud is a cloud. */
const shared = ["facts", "metadata", "release", "setup"];
const clouds = readdirSync(join(root, "src/cloud"), { withFileTypes: true })
  .filter((entry) => entry.isDirectory() && !shared.includes(entry.name))
  .map(({ name }) => `cloud/${name}`);

const mayImport: Readonly<Record<string, readonly string[]>> = {
  errors: [],
  core: everywhere,
  contracts: everywhere,
  // Options of each cloud; its adapters are loaded by those who need them.
  config: [...everywhere, "contracts", "cloud"],
  kube: [...everywhere, "contracts", "kube/object", "kube/watch", "cloud/release"],
  // One node: its pods and how they leave, its marks, its events.
  "kube/node": [...everywhere, "contracts", "kube/object", "kube/watch"],
  // What the API's objects and responses mean; pure, so that the agent and the model read them
  // alike.
  "kube/object": [...everywhere, "contracts"],
  // A kubeconfig is YAML.
  "kube/access": [...everywhere, "contracts", "config"],
  "kube/http": [...everywhere, "contracts", "kube/access", "kube/object"],
  "kube/watch": [...everywhere, "contracts", "kube/object"],
  "kube/lease": [...everywhere, "contracts", "kube/object", "kube/watch"],
  "cloud/facts": ["core"],
  cloud: [...everywhere, "contracts", "cloud/metadata", ...clouds],
  // What the metadata services of all clouds have in common.
  "cloud/metadata": [...everywhere, "contracts"],
  // How a machine is released and its launch time is read, in any cloud.
  "cloud/release": [...everywhere, "contracts"],
  // The text of scripts that set up a cloud.
  "cloud/setup": everywhere,
  ...Object.fromEntries(
    clouds.map((cloud) => [
      cloud,
      [...everywhere, "contracts", "cloud/metadata", "cloud/release", "cloud/setup"],
    ]),
  ),
  actions: [...everywhere, "contracts"],
  audit: [...everywhere, "contracts", "cloud"],
  // Manifests with the line of each object and field; a plan's recordings are read by it, too.
  "audit/input": [...everywhere, "audit", "config"],
  // Settings of other tools as policies and values; config writes the text of a policy.
  migrate: [...everywhere, "config"],
  doctor: [...everywhere, "contracts", "cloud"],
  controller: [...everywhere, "contracts"],
  agent: [...everywhere, "contracts", "kube/object"],
  sim: [...everywhere, "contracts", "controller", "agent"],
  // What the board shows and does, whoever serves it; the page gets the stream's types from here.
  board: [...everywhere, "contracts"],
  // The page itself, in a browser. It uses nothing of the server but what that sends; the what-if
  // reads a policy's text.
  web: [...everywhere, "board", "config"],
  server: [...everywhere, "contracts"],
  runtime: [...everywhere, "contracts"],
  cli: [
    ...everywhere,
    "contracts",
    "config",
    "kube",
    ...["kube/object", "kube/access", "kube/http", "kube/watch", "kube/lease", "kube/node"],
    "cloud",
    // Its actions, its queue and its Lambda are features of their own.
    "cloud/aws",
    "actions",
    "audit",
    "audit/input",
    "migrate",
    "doctor",
    "controller",
    "agent",
    "sim",
    "board",
    "server",
    "runtime",
  ],
};

/**
 * The folders of core and the facts of clouds, and which of the others each may import. A file
 * directly in core may import all.
 */
const mayImportInCore: Readonly<Record<string, readonly string[]>> = {
  time: [],
  "cloud/facts": ["time"],
  chance: ["time"],
  reason: ["time", "cloud/facts"],
  json: ["time"],
  cluster: ["time", "json", "cloud/facts"],
  policy: ["time", "reason", "cluster", "cloud/facts"],
  departure: ["time", "reason", "json", "cluster", "policy"],
  notice: ["time", "reason", "cluster", "policy", "departure", "cloud/facts"],
  limits: ["time", "reason", "cluster", "policy", "departure"],
  capacity: ["cluster", "policy"],
  action: ["time", "reason", "json", "cluster", "policy", "departure"],
  "drain-plan": ["time", "reason", "cluster", "policy", "departure", "capacity"],
  drain: [
    ...["time", "chance", "reason", "cluster", "policy", "departure", "capacity", "drain-plan"],
  ],
  "plan/spacing": ["time", "policy", "limits"],
  plan: [
    ...["time", "reason", "cluster", "policy", "departure", "notice", "limits"],
    ...["plan/spacing", "cloud/facts"],
  ],
  next: [
    ...["time", "json", "reason", "cluster", "policy", "departure", "notice", "limits", "capacity"],
    ...["action", "drain-plan", "drain", "plan"],
  ],
};

/** Each dependency is imported in one place, so that it can be replaced there. */
const packageSites: Readonly<Record<string, readonly string[]>> = {
  "@kubernetes/client-node": ["src/kube/access/kubeconfig-access.ts"],
  "@aws-sdk/client-auto-scaling": ["src/cloud/aws/auto-scaling.ts"],
  "@aws-sdk/client-ec2": ["src/cloud/aws/ec2-client.ts"],
  "@aws-sdk/client-elastic-load-balancing": [
    "src/cloud/aws/actions/classic-load-balancer-client.ts",
  ],
  "@aws-sdk/client-elastic-load-balancing-v2": ["src/cloud/aws/actions/target-group-client.ts"],
  "@aws-sdk/client-lambda": ["src/cloud/aws/actions/lambda-client.ts"],
  "@aws-sdk/client-sns": ["src/cloud/aws/actions/sns-client.ts"],
  "@aws-sdk/client-sqs": ["src/cloud/aws/queue/sqs-client.ts"],
  "@aws-sdk/credential-provider-node": ["src/cloud/aws/aws-client.ts"],
  "@smithy/signature-v4": ["src/cloud/aws/actions/query-sender.ts"],
  "@azure/msal-node": ["src/cloud/azure/azure-compute.ts"],
  "google-auth-library": ["src/cloud/gcp/compute-engine.ts"],
  mustache: ["src/core/action/template.ts"],
  croner: ["src/core/limits/windows.ts"],
  "temporal-polyfill": ["src/runtime/temporal.ts"],
  commander: ["src/cli/command-line/command-line.ts"],
  // The second one reads manifests on worker threads: ten thousand documents instead of one.
  yaml: ["src/config/yaml-text.ts", "src/audit/input/parse-manifests.ts"],
  "jsonc-parser": ["src/audit/input/json-lines.ts"],
  "prom-client": ["src/server/metrics.ts"],
  // The JSX runtime of src/web imports it, too.
  preact: ["src/web/preact.ts"],
};

/**
 * The files that may open connections, by Node's modules; `tools/check-style.ts` has those that are
 * given a `fetch`. Hosts that a policy, a Secret or a node names are only reached through
 * `src/actions/http-sender.ts`; the others are of the operator's own options.
 */
const connectionSites: Readonly<Record<string, readonly string[]>> = {
  "node:http": [
    "src/actions/http-sender.ts",
    "src/cloud/aws/aws-client.ts",
    ...["src/kube/access/kube-access.ts", "src/kube/http/http-api.ts"],
    ...["src/kube/http/http-connection.ts", "src/kube/http/socket-pool.ts"],
    // Servers.
    ...["src/server/http-server.ts", "src/server/page-guard.ts", "src/server/page-server.ts"],
    "src/sim/http/serve-model.ts",
  ],
  "node:https": [
    "src/actions/http-sender.ts",
    "src/cloud/aws/aws-client.ts",
    "src/kube/access/kubeconfig-access.ts",
    ...["src/kube/http/http-connection.ts", "src/kube/http/socket-pool.ts"],
    "src/server/http-server.ts",
  ],
  "node:http2": ["src/kube/http/connection-probe.ts"],
  "node:net": [
    ...["src/actions/action-hosts.ts", "src/actions/http-sender.ts"],
    ...["src/kube/access/load-kube-access.ts", "src/kube/http/http-connection.ts"],
    ...["src/kube/http/connection-probe.ts", "src/sim/http/serve-model.ts"],
  ],
  "node:tls": [
    ...["src/kube/http/connection-probe.ts", "src/kube/http/socket-pool.ts"],
    "src/runtime/key-pair-file.ts",
  ],
  "node:dgram": [],
};

/** Folders that must not use Node's own modules, because they run anywhere or must not do I/O. */
const withoutBuiltins = [
  ...["core", "contracts", "config", "kube/object", "controller", "agent", "audit", "doctor"],
  "migrate",
  ...["board", "web"],
  "errors",
];

const importPattern =
  /(?:^|\n)\s*(?:import|export)\s[^;]*?from\s+"([^"]+)"|import\(\s*"([^"]+)"\s*\)|(?:^|\n)import\s+"([^"]+)"/g;

function folderOf(path: string): string {
  const parts = path.replace(/^src\//, "").split("/");
  if (isFacts(path)) return "cloud/facts";
  if (parts.length === 1) return (parts[0] as string).replace(/\.ts$/, "");
  const room = `${parts[0]}/${parts[1]}`;
  if (parts[0] === "cloud" && parts.length === 2) return "cloud";
  return parts[0] === "cloud" || room in mayImport ? room : (parts[0] as string);
}

/** Those of one cloud are in its folder. */
function isFacts(path: string): boolean {
  return /^src\/cloud\/(facts\/|[^/]+\/[^/]+-facts\.ts$)/.test(path);
}

/** `plan/spacing` for `src/core/plan/spacing/spacing.ts`; undefined outside the folders of core. */
function roomOf(path: string): string | undefined {
  return isFacts(path) ? "cloud/facts" : /^src\/core\/(.+)\/[^/]+$/.exec(path)?.[1];
}

function importFindings(file: SourceFile): string[] {
  const from = folderOf(file.path);
  return [...file.text.matchAll(importPattern)].flatMap((match) => {
    const target = (match[1] ?? match[2] ?? match[3]) as string;
    const path = join(dirname(file.path), target);
    const problem = target.startsWith(".")
      ? (ofFolder(from, folderOf(path)) ?? ofRoom(roomOf(file.path), path))
      : ofPackage(file.path, from, target);
    return problem === undefined ? [] : [`${file.path}: ${problem}`];
  });
}

function ofFolder(from: string, to: string): string | undefined {
  // The command that prints the version reads package.json as data.
  if (to === "package.json" && from === "cli") return undefined;
  const allowed = mayImport[from];
  if (allowed === undefined)
    return `the folder ${from} is not in the table of tools/check-imports.ts`;
  if (from === to || allowed.includes(to)) return undefined;
  return `${from} may not import ${to}`;
}

function ofRoom(from: string | undefined, path: string): string | undefined {
  if (from === undefined || (folderOf(path) !== "core" && !isFacts(path))) return undefined;
  const allowed = mayImportInCore[from];
  if (allowed === undefined)
    return `the room core/${from} is not in the table of tools/check-imports.ts`;
  const to = roomOf(path);
  if (to === from || (to !== undefined && allowed.includes(to))) return undefined;
  return `${named(from)} may not import ${to === undefined ? path : named(to)}`;
}

function named(room: string): string {
  return room === "cloud/facts" ? room : `core/${room}`;
}

function ofPackage(path: string, from: string, target: string): string | undefined {
  if (target.startsWith("node:")) {
    if (connectionSites[target]?.includes(path) === false) {
      return `${path} may not import ${target}; reach hosts through src/actions/http-sender.ts`;
    }
    return withoutBuiltins.includes(from) ? `${from} may not import ${target}` : undefined;
  }
  const name = target
    .split("/")
    .slice(0, target.startsWith("@") ? 2 : 1)
    .join("/");
  const sites = packageSites[name];
  if (sites === undefined)
    return `the package ${name} has no import site in tools/check-imports.ts`;
  return sites.includes(path) ? undefined : `${name} is imported by ${sites.join(", ")} alone`;
}

if (import.meta.main) {
  process.exitCode = report("check-imports", sourceFiles(["src"]).flatMap(importFindings));
}
