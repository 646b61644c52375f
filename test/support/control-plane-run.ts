import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { Agent } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buildControlPlane } from "../controlplane/build.ts";
import { type ApiAnswer, type ApiRequest, apiRequest } from "./api-request.ts";
import { type ChildPart, startPart } from "./child-part.ts";
import * as commands from "./control-plane-commands.ts";
import { writeControlPlaneFiles } from "./control-plane-files.ts";
import { freePort } from "./free-port.ts";
import { isHealthy } from "./probe.ts";
import { noteUsedRights, withAudit } from "./used-rights.ts";
import { waitUntil } from "./wait-until.ts";

export interface ControlPlaneOptions {
  /**
   * Default true; without it there is no default service account, so no namespace can have pods.
   */
  readonly withControllerManager?: boolean;
  /** Default true; without it a pod must name its node. */
  readonly withScheduler?: boolean;
  /** Default true; without it no node becomes ready and no pod runs. */
  readonly withKwok?: boolean;
  /** Stage files; default all of `test/controlplane/stages`, see `defaultStages`. */
  readonly kwokStages?: readonly string[];
  /** Added to the API server's flags, such as a feature gate. */
  readonly apiServerFlags?: readonly string[];
}

export type RunRequest = Omit<ApiRequest, "token"> & { readonly token?: string };

/** On a slow machine with other load, the API server needs far more than its usual 3 s. */
const startTimeoutMs = 120_000;

const nodeLeasesPath = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";

const stagesFolder = join(import.meta.dirname, "..", "controlplane", "stages");

export function defaultStages(): readonly string[] {
  const files = readdirSync(stagesFolder).filter((file) => file.endsWith(".yaml"));
  return files.map((file) => join(stagesFolder, file));
}

/** The internals of a control plane: its processes, files and addresses. */
export interface ControlPlaneRun {
  readonly inputs: commands.CommandInputs;
  readonly url: string;
  readonly agent: Agent;
  readonly options: ControlPlaneOptions;
  readonly parts: Map<string, ChildPart>;
  readonly death: AbortController;
  /** Called if this process ends without having called `stop`. */
  readonly abandon: () => void;
}

export async function prepareRun(options: ControlPlaneOptions): Promise<ControlPlaneRun> {
  const binaries = buildControlPlane();
  const folder = mkdtempSync(join(tmpdir(), "lastcall-e2e-"));
  const ports = {
    apiServer: await freePort(),
    etcd: await freePort(),
    etcdPeer: await freePort(),
    controllerManager: await freePort(),
    scheduler: await freePort(),
    kwok: await freePort(),
  };
  const url = `https://127.0.0.1:${ports.apiServer}`;
  const files = writeControlPlaneFiles(folder, url);
  const parts = new Map<string, ChildPart>();
  const { kwokStages = defaultStages() } = options;
  const apiServerFlags = withAudit(options.apiServerFlags ?? [], folder);
  return {
    inputs: { binaries, files, ports, kwokStages, apiServerFlags },
    options,
    url,
    agent: new Agent({ keepAlive: true }),
    parts,
    death: new AbortController(),
    abandon: () => {
      for (const part of parts.values()) void part.kill();
      rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
    },
  };
}

export function launch(run: ControlPlaneRun, part: commands.PartCommand): ChildPart {
  const { folder } = run.inputs.files;
  const onDeath = (error: Error) => run.death.abort(error);
  const started = startPart({ ...part, folder, onDeath });
  run.parts.set(part.name, started);
  return started;
}

function untilUsable(
  run: ControlPlaneRun,
  what: string,
  condition: () => Promise<boolean>,
): Promise<boolean> {
  return waitUntil(condition, { what, timeoutMs: startTimeoutMs, signal: run.death.signal });
}

export async function startEtcd(run: ControlPlaneRun): Promise<void> {
  launch(run, commands.etcdCommand(run.inputs));
  const health = `http://127.0.0.1:${run.inputs.ports.etcd}/health`;
  await untilUsable(run, "etcd is healthy", () => isHealthy(health));
}

/** Starts the API server on the data in etcd, then everything else that the options request. */
export async function startServers(run: ControlPlaneRun): Promise<void> {
  const { withControllerManager = true, withScheduler = true, withKwok = true } = run.options;
  await startApiServer(run);
  await Promise.all([
    withControllerManager && startControllerManager(run),
    withScheduler && startScheduler(run),
    withKwok && startKwok(run),
  ]);
}

/**
 * Kills the API server, which breaks every connection to it, and the clients that were started with
 * it. Otherwise they would reconnect only after a backoff of up to a minute, and the node
 * controller would then consider every node lost.
 */
export async function stopServers(run: ControlPlaneRun): Promise<void> {
  const servers = [...run.parts.values()].filter(({ name }) => name !== commands.etcdName);
  await Promise.all(servers.map((part) => part.kill()));
  run.agent.destroy();
}

async function startApiServer(run: ControlPlaneRun): Promise<void> {
  launch(run, commands.apiServerCommand(run.inputs));
  await untilUsable(run, "the API server is ready", async () => {
    return (await request(run, { path: "/readyz" })).status === 200;
  });
}

async function startControllerManager(run: ControlPlaneRun): Promise<void> {
  launch(run, commands.controllerManagerCommand(run.inputs));
  const health = `https://127.0.0.1:${run.inputs.ports.controllerManager}/healthz`;
  await untilUsable(run, "the controller manager is healthy", () => isHealthy(health));
  const path = "/api/v1/namespaces/default/serviceaccounts/default";
  await untilUsable(run, "the default service account exists", async () => {
    return (await request(run, { path })).status === 200;
  });
}

async function startScheduler(run: ControlPlaneRun): Promise<void> {
  launch(run, commands.schedulerCommand(run.inputs));
  // Kubernetes 1.30 has no /readyz here.
  const health = `https://127.0.0.1:${run.inputs.ports.scheduler}/healthz`;
  await untilUsable(run, "the scheduler is healthy", () => isHealthy(health));
}

async function startKwok(run: ControlPlaneRun): Promise<void> {
  // A kwok that was killed leaves leases in its name, which the next one would have to wait out.
  await request(run, { method: "DELETE", path: nodeLeasesPath });
  launch(run, commands.kwokCommand(run.inputs));
  const health = `http://127.0.0.1:${run.inputs.ports.kwok}/healthz`;
  await untilUsable(run, "kwok is healthy", () => isHealthy(health));
}

/** One plain request, as the administrator unless the call has a token. */
export function request(run: ControlPlaneRun, call: RunRequest): Promise<ApiAnswer> {
  run.death.signal.throwIfAborted();
  // Read each time, because the API server writes the certificate only after it has started.
  const ca = readFileSync(run.inputs.files.caFile, "utf8");
  const token = call.token ?? run.inputs.files.adminToken;
  return apiRequest({ url: run.url, ca, agent: run.agent }, { ...call, token });
}

export async function stopRun(run: ControlPlaneRun): Promise<void> {
  await Promise.all([...run.parts.values()].map((part) => part.kill()));
  run.agent.destroy();
  noteUsedRights(run.inputs.apiServerFlags);
  rmSync(run.inputs.files.folder, { recursive: true, force: true, maxRetries: 3 });
  process.off("exit", run.abandon);
}
