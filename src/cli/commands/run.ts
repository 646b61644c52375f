import { unknownVariables } from "../../config/options/resolve-options.ts";
import type { Clock } from "../../contracts/clock.ts";
import type { Fleet } from "../../contracts/cluster.ts";
import type { KubeApi, KubeRequest } from "../../contracts/kube-api.ts";
import type { Leadership } from "../../contracts/leadership.ts";
import type { Log, Metrics } from "../../contracts/telemetry.ts";
import { AlwaysLeading, type Controller } from "../../controller/controller.ts";
import { staleWatch } from "../../core/limits/stale-watch.ts";
import { between, type Millis, seconds } from "../../core/time/time.ts";
import { isLastcallError, LastcallError, messageOf } from "../../errors.ts";
import type { LiveLease } from "../../kube/lease/live-lease.ts";
import { apiError } from "../../kube/object/api-call.ts";
import { onServerTime } from "../../kube/server-clock.ts";
import { HeapPace } from "../../runtime/heap-pace.ts";
import { holderIsDead, processIdentity } from "../../runtime/process-identity.ts";
import { createLog } from "../../runtime/process-io.ts";
import { eventLoopTurn } from "../../runtime/real-clock.ts";
import { serve } from "../../server/http-server.ts";
import { PrometheusMetrics } from "../../server/metrics.ts";
import { MetricsServer } from "../../server/metrics-server.ts";
import { type AssemblyOptions, assembleController } from "../assemble/assemble-controller.ts";
import { actionHosts, cloudPorts } from "../assemble/controller-ports.ts";
import { healthRoutes, metricsKeyPair } from "../assemble/metrics-endpoint.ts";
import { ClusterClock, connect } from "../cluster/connect.ts";
import type { CommandInput, CommandIo, CommandRun } from "../command-line/command.ts";
import { readPolicyFiles } from "../input/read-objects.ts";

type RunOptions = CommandInput<"run">["options"];

const leaseName = "lastcall";

/** The fleet, once there is one: the metrics are served earlier. */
interface WatchedFleet {
  fleet?: Fleet;
}

/** Runs the controller until it is interrupted. */
export const runController: CommandRun<"run"> = async ({ options, io }) => {
  const log = createLog({
    level: options.logLevel,
    format: options.logFormat,
    write: io.err,
    clock: io.clock,
  });
  for (const problem of unknownVariables("run", io.env)) log.warn("variable-unknown", { problem });
  const fixedPolicies =
    options.filename.length === 0
      ? undefined
      : (await readPolicyFiles(options.filename, io)).policies;
  const metrics = new PrometheusMetrics();
  // Before the cluster is contacted, so that a wrong option is reported even if the cluster is
  // unreachable.
  const watched: WatchedFleet = {};
  const metricsServer = metricsServerOf({ options, io, metrics, log, watched });
  const clouds = await cloudPorts(options, io);
  const allowed = await actionHosts(options.actionHosts);
  const pace = new HeapPace(io);
  const { access, namespace, close, ...connected } = await connect(
    {
      ...options,
      probesConnections: true,
      onRush: () => pace.rush(),
      onFirst: () => pace.stir(),
    },
    io,
  );
  const { api, clock } = onServerTime(connected.api, io.clock);
  await reach({ api, server: access.server, io, log });
  const home = options.namespace ?? namespace;
  if (!options.dryRun) await checkAlone({ options, io, api, home, log });
  const identity = processIdentity(io.env.POD_NAME);
  const { controller, fleet } = assembleController({
    api,
    clock,
    rng: io.rng,
    log,
    metrics,
    namespace: home,
    placeholderImage: options.placeholderImage,
    identity,
    leadership: await leadershipOf({ options, io, api, home, identity, log }),
    ...clouds,
    actions: { allowed, env: io.env, follow: io.signal },
    joinWithinMs: options.sqsAbandonLaunchAfter,
    fixedPolicies,
    audit: await auditOf(options, api),
    self: io.env.POD_UID,
    departingSoonMs: options.preferNoSchedule,
    keepsFailedPods: !options.removeFailedPods,
    dryRun: options.dryRun,
  });
  watched.fleet = fleet;
  const stopServing = await serveStatus(options, { controller, fleet, metricsServer });
  metricsServer.keep();
  log.info("started", { identity, namespace: home, dryRun: options.dryRun });
  try {
    await controller.run(io.signal);
    log.info("stopped");
    return 0;
  } finally {
    await stopServing();
    close();
  }
};

/** Logs which API server is contacted: one that drops packets does not even refuse connections. */
async function reach(parts: {
  readonly api: KubeApi;
  readonly server: string;
  readonly io: CommandIo;
  readonly log: Log;
}): Promise<void> {
  const { api, server, io, log } = parts;
  log.info("connecting", { server });
  const onWait = (error: LastcallError, patienceMs: Millis) =>
    log.warn("api-server-awaited", {
      ...{ code: error.code, error: error.message },
      forSeconds: patienceMs / 1000,
    });
  await preflight(api, { ...io, onWait });
}

/** Its code is loaded only if it is enabled. */
async function auditOf(
  { auditEvery }: RunOptions,
  api: KubeApi,
): Promise<AssemblyOptions["audit"]> {
  if (auditEvery === 0) return undefined;
  const { ClusterAuditor } = await import("../cluster/cluster-auditor.ts");
  return { auditor: new ClusterAuditor(api, eventLoopTurn), everyMs: auditEvery };
}

/**
 * Refuses to be a second leader: a Lease counts in its own namespace, and two controllers would
 * each start as many departures as a budget allows. In a pod this is not checked, since its
 * account may not read the Leases of other namespaces; `doctor` does, as the person who runs it.
 */
export async function checkAlone(tools: {
  readonly options: Pick<RunOptions, "leaderElect">;
  readonly io: Pick<CommandIo, "clock" | "env" | "signal">;
  readonly api: KubeApi;
  /** The namespace of this controller's Lease. */
  readonly home: string;
  readonly log: Pick<Log, "warn">;
}): Promise<void> {
  const { options, io, api, home, log } = tools;
  if (io.env.POD_NAMESPACE !== undefined) return;
  const clock = new ClusterClock(api, io.clock);
  await clock.find(io.signal);
  const leases = await leasesNow(api, clock, io);
  if (!options.leaderElect) {
    for (const { namespace, holder } of leases) log.warn("another-leader", { namespace, holder });
    return;
  }
  const other = leases.find(({ namespace }) => namespace !== home);
  if (other === undefined) return;
  const { namespace, holder, renewedAt } = other;
  const age = Math.max(0, Math.round(between(renewedAt, clock.now()) / 1000));
  throw new LastcallError(
    "CONFLICT",
    `Cannot lead in the namespace ${home}: ${holder} leads in ${namespace} and renewed its Lease ${age} s ago, expected one leader in a cluster; run with -n ${namespace} to stand by, or stop the other first`,
  );
}

/** Waits out a short outage, like the first contact. Throws the API's error after 20 s of it. */
async function leasesNow(
  api: KubeApi,
  clusterClock: Clock,
  { clock, signal }: Pick<CommandIo, "clock" | "signal">,
): Promise<readonly LiveLease[]> {
  const { liveLeases } = await import("../../kube/lease/live-lease.ts");
  const giveUpMs = clock.monotonic() + patienceMs;
  for (;;) {
    try {
      const found = await liveLeases(api, { name: leaseName, at: clusterClock.now(), signal });
      return found ?? [];
    } catch (error) {
      const passing = isLastcallError(error) && error.retryable;
      if (!passing || clock.monotonic() >= giveUpMs) throw error;
    }
    await clock.sleep(againMs, signal);
  }
}

async function leadershipOf(tools: {
  readonly options: RunOptions;
  readonly io: CommandIo;
  readonly api: KubeApi;
  readonly home: string;
  readonly identity: string;
  readonly log: Log;
}): Promise<Leadership> {
  const { options, io, api, home, identity, log } = tools;
  if (!options.leaderElect || options.dryRun) {
    return new AlwaysLeading();
  }
  const { LeaderLease } = await import("../../kube/lease/leader-lease.ts");
  return new LeaderLease({
    api,
    clock: io.clock,
    rng: io.rng,
    namespace: home,
    name: leaseName,
    identity,
    holderIsDead,
    onError: (error) => log.warn("lease-error", { error: messageOf(error) }),
  });
}

function metricsServerOf(parts: {
  readonly options: RunOptions;
  readonly io: CommandIo;
  readonly metrics: PrometheusMetrics;
  readonly log: Log;
  readonly watched: WatchedFleet;
}): MetricsServer {
  const { options, io, metrics, log, watched } = parts;
  const expose = async () => {
    if (watched.fleet !== undefined) showSilences(watched.fleet, metrics);
    return { status: 200, ...(await metrics.exposition()) };
  };
  return new MetricsServer({
    address: options.metricsAddress,
    routes: { "/metrics": expose },
    serve,
    readPair: metricsKeyPair(options),
    clock: io.clock,
    onError: (error) => {
      const code = isLastcallError(error) ? error.code : "UNEXPECTED";
      metrics.count("lastcall_errors_total", { code });
      log.warn("metrics-error", { code, error: messageOf(error) });
    },
  });
}

/**
 * Returns the function that stops it. If one address cannot be bound, the other is closed as well:
 * a server that is still running would keep a failed process alive.
 */
async function serveStatus(
  options: RunOptions,
  parts: {
    readonly controller: Controller;
    readonly fleet: Fleet;
    readonly metricsServer: MetricsServer;
  },
): Promise<() => Promise<void>> {
  const { fleet, metricsServer } = parts;
  const { health } = parts.controller;
  await metricsServer.listen();
  try {
    const routes = healthRoutes({
      problem: () => health.problem(),
      whyNotReady: () =>
        health.ready() ? staleWatch(fleet.silences()) : "the initial lists are not complete",
    });
    const healthServer = await serve(options.healthAddress, routes);
    return async () => {
      await Promise.all([metricsServer.close(), healthServer.close()]);
    };
  } catch (error) {
    await metricsServer.close();
    throw error;
  }
}

/** A restarting API server is back by then; a wrong address never is. */
const patienceMs = seconds(20);
const againMs = seconds(1);

interface ServerWait {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly onWait: (error: LastcallError, patienceMs: Millis) => void;
}

/**
 * Contacts the API server before a long run starts, so that a wrong address or token ends in one
 * sentence and exit code 1 instead of an endless log. Once the server has responded, any outage is
 * waited out. Throws API_UNREACHABLE after 20 s, API_UNAUTHORIZED at once. `onWait` is called at
 * the first request without a response, with how long it keeps trying.
 */
export async function preflight(
  api: KubeApi,
  { clock, signal, onWait }: ServerWait,
): Promise<void> {
  const request: KubeRequest = { method: "GET", path: "/version", signal };
  const giveUpMs = clock.monotonic() + patienceMs;
  let waits = false;
  for (;;) {
    try {
      const answer = await api.send(request);
      if (answer.status === 401) throw apiError(request, answer);
      return;
    } catch (error) {
      const passing = isLastcallError(error) && error.code === "API_UNREACHABLE";
      if (!passing || clock.monotonic() >= giveUpMs) throw error;
      if (!waits) onWait(error, patienceMs);
      waits = true;
    }
    await clock.sleep(againMs, signal);
  }
}

/** Sets the current silences; called for each scrape. */
export function showSilences(fleet: Pick<Fleet, "silences">, metrics: Pick<Metrics, "set">): void {
  const series = fleet.silences().map(({ kind, ms }) => ({ labels: { kind }, value: ms / 1000 }));
  metrics.set("lastcall_watch_silence_seconds", series);
}
