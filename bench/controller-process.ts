import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parse } from "yaml";
import type { ControlPlane } from "../test/support/control-plane.ts";
import { freePort } from "../test/support/free-port.ts";
import { waitUntil } from "../test/support/wait-until.ts";
import { cpuSecondsOf, memoryMiB } from "./process-figures.ts";

const root = fileURLToPath(new URL("..", import.meta.url));

export interface ControllerProcess {
  readonly pid: number;
  /**
   * How it finds its cluster: by a pod's service account, or by a kubeconfig with the same token.
   */
  readonly access: "service account" | "kubeconfig";
  /** The variables that `deploy/` sets for it. */
  readonly environment: Readonly<Record<string, string>>;
  /** Resident memory in MiB: the current and the peak value. */
  memory(): { readonly nowMiB: number; readonly peakMiB: number };
  /** Processor time in seconds since its start. */
  cpuSeconds(): number;
  log(): string;
  stop(): Promise<void>;
}

export interface ControllerStart {
  readonly plane: ControlPlane;
  readonly token: string;
  readonly folder: string;
  readonly access?: ControllerProcess["access"] | undefined;
  /** Additional arguments and variables for the controller. */
  readonly args?: readonly string[] | undefined;
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** Additional arguments for Node, such as those for a heap profile. */
  readonly nodeArgs?: readonly string[] | undefined;
  /** What Node runs; by default the bundle, through the installed script. */
  readonly program?: string | undefined;
}

/** Starts the bundle in its own process, as `deploy/` does. Resolves when it is ready. */
export async function startController(start: ControllerStart): Promise<ControllerProcess> {
  const health = await freePort();
  const metrics = await freePort();
  const access = start.access ?? (mayUnshare() ? "service account" : "kubeconfig");
  const environment = deployedEnvironment();
  const command = commandOf(start, { access, health, metrics });
  const child = spawn(command.file, command.args, {
    cwd: start.folder,
    env: {
      PATH: process.env.PATH,
      HOME: start.folder,
      POD_NAMESPACE: "lastcall",
      ...environment,
      ...command.env,
      ...start.env,
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const running = follow(child, { access, environment });
  await waitUntil(async () => (await fetch(`http://127.0.0.1:${health}/readyz`)).status === 200, {
    what: `the controller is ready\n${running.log()}`,
    timeoutMs: 120_000,
    intervalMs: 20,
  });
  const preloaded = environment.LD_PRELOAD;
  if (preloaded && !readFileSync(`/proc/${running.pid}/maps`, "utf8").includes(preloaded)) {
    throw new Error(`Cannot measure what ships without ${preloaded}: apt-get install libjemalloc2`);
  }
  return running;
}

/**
 * Keeps a bench from asking Google for the age of its machines, whatever credentials are found
 * here: nothing listens on the port of the discard protocol.
 */
const nobody = "http://127.0.0.1:9";

interface Command {
  readonly file: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

function commandOf(
  { plane, token, folder, args: more = [], nodeArgs = [], program: main }: ControllerStart,
  how: { readonly access: string; readonly health: number; readonly metrics: number },
): Command {
  const addresses = [
    ...["--health-address", `127.0.0.1:${how.health}`],
    ...["--metrics-address", `127.0.0.1:${how.metrics}`],
  ];
  const cloud = more.includes("--gcp-endpoint") ? [] : ["--gcp-endpoint", nobody];
  const flags = [...cloud, ...more, ...addresses];
  const program = [...nodeArgs, main ?? join(root, "bin/lastcall.js"), "run", ...flags];
  if (how.access === "kubeconfig") {
    const args = [...program, "--kubeconfig", plane.kubeconfigFor("bench", token)];
    return { file: process.execPath, args, env: {} };
  }
  const account = join(folder, "account");
  mkdirSync(account, { recursive: true });
  writeFileSync(join(account, "token"), token);
  writeFileSync(join(account, "namespace"), "lastcall");
  writeFileSync(join(account, "ca.crt"), readFileSync(plane.caFile));
  const { hostname, port } = new URL(plane.url);
  // In its own mount namespace it finds the account where a kubelet puts it.
  const script = [
    "mount -t tmpfs bench /run",
    "mkdir -p /run/secrets/kubernetes.io/serviceaccount",
    'cp "$ACCOUNT"/* /run/secrets/kubernetes.io/serviceaccount/',
    'exec "$@"',
  ].join(" && ");
  return {
    file: "unshare",
    args: ["--mount", "sh", "-c", script, "sh", process.execPath, ...program],
    env: {
      ACCOUNT: account,
      KUBERNETES_SERVICE_HOST: hostname,
      KUBERNETES_SERVICE_PORT: port,
    },
  };
}

function mayUnshare(): boolean {
  const script = "mount -t tmpfs bench /run";
  return spawnSync("unshare", ["--mount", "sh", "-c", script]).status === 0;
}

/** The environment of the Deployment, so that the bench measures what ships. */
function deployedEnvironment(): Readonly<Record<string, string>> {
  const text = readFileSync(join(root, "deploy/base/controller.yaml"), "utf8");
  const deployment = parse(text.split("\n---\n")[0] ?? "");
  const variables: readonly { name: string; value?: string }[] =
    deployment.spec.template.spec.containers[0].env;
  return Object.fromEntries(
    variables.flatMap(({ name, value }) => (value === undefined ? [] : [[name, value]])),
  );
}

function follow(
  child: ChildProcess,
  how: Pick<ControllerProcess, "access" | "environment">,
): ControllerProcess {
  const pid = child.pid ?? 0;
  let log = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding("utf8");
    stream?.on("data", (chunk: string) => {
      log += chunk;
    });
  }
  const ended = new Promise<void>((resolve) => child.once("close", () => resolve()));
  const orphaned = () => void child.kill("SIGKILL");
  process.once("exit", orphaned);
  return {
    pid,
    ...how,
    memory: () => ({ nowMiB: memoryMiB(pid, "VmRSS"), peakMiB: memoryMiB(pid, "VmHWM") }),
    cpuSeconds: () => cpuSecondsOf(pid),
    log: () => log,
    stop: async () => {
      child.kill("SIGTERM");
      await ended;
      process.off("exit", orphaned);
    },
  };
}
