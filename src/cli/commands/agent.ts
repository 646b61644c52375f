import { AccountApi, ownUid } from "../../agent/account-api.ts";
import { Acknowledger } from "../../agent/acknowledger.ts";
import { Agent } from "../../agent/agent.ts";
import { AgentHealth, AgentMetrics, ErrorLog, NoticeServer } from "../../agent/agent-status.ts";
import { LateFallback } from "../../agent/late-fallback.ts";
import { NoticeReporter } from "../../agent/notice-reporter.ts";
import { clouds, typedClouds } from "../../cloud/clouds.ts";
import { detectCloud } from "../../cloud/detect-cloud.ts";
import { unknownVariables } from "../../config/options/resolve-options.ts";
import type { Clock } from "../../contracts/clock.ts";
import type { NoticeSource } from "../../contracts/cloud.ts";
import type { Cloud } from "../../contracts/cloud-descriptor.ts";
import type { KubeApi, KubeSender } from "../../contracts/kube-api.ts";
import type { Log } from "../../contracts/telemetry.ts";
import type { NodeIdentity } from "../../core/cluster/node.ts";
import { seconds } from "../../core/time/time.ts";
import { LastcallError, messageOf } from "../../errors.ts";
import { bunServe } from "../../runtime/bun-server.ts";
import { apiServerOf, readAccountToken, readBootId } from "../../runtime/process-identity.ts";
import { createLog } from "../../runtime/process-io.ts";
import { MetricsServer } from "../../server/metrics-server.ts";
import type { AgentFallbackOptions } from "../assemble/agent-fallback.ts";
import { healthRoutes, metricsKeyPair } from "../assemble/metrics-endpoint.ts";
import type { CommandInput, CommandIo, CommandRun } from "../command-line/command.ts";
import { version } from "./version.ts";

interface AgentInput {
  readonly options: CommandInput<"agent">["options"];
  /** Less than other commands get, so that the agent's image need not load what they need. */
  readonly io: Pick<CommandIo, "err" | "env" | "clock" | "rng" | "fetch" | "signal">;
}

/** Watches for the notices of one node, until it is interrupted. */
export const runAgent = (async (input: AgentInput) => {
  const { options, io } = input;
  const { clock, rng } = io;
  const log = createLog({
    level: options.logLevel,
    format: options.logFormat,
    write: io.err,
    clock,
  });
  for (const problem of unknownVariables("agent", io.env))
    log.warn("variable-unknown", { problem });
  const health = new AgentHealth(clock);
  const metrics = new AgentMetrics();
  const { api, close, identify } = await cluster(input);
  const reporter = new NoticeReporter({ api, identify, log });
  const acknowledger =
    typedClouds.some((one) => "acknowledges" in one && one.acknowledges(options)) && !options.dryRun
      ? new Acknowledger({ reporter, clock, log, metrics })
      : undefined;
  const feed = options.noticeAddress === undefined ? undefined : new NoticeServer(clock);
  const agent = new Agent({
    findSource: (signal) => findNoticeSource({ options, io, health }, signal),
    reporter,
    fallback: fallbackOf(input, {
      ...{ api, reporter, identify, log, metrics },
      onDrained: () => acknowledger?.drained(),
    }),
    ...{ acknowledger, feed, health, clock, rng, log, metrics, dryRun: options.dryRun },
  });
  const stopServing = await serveStatus(input, { health, metrics, feed, log });
  log.info("started", { node: options.nodeName, dryRun: options.dryRun, version });
  try {
    await Promise.all([agent.run(io.signal), feed?.run(io.signal)]);
  } catch (error) {
    if (!io.signal.aborted) throw error;
  } finally {
    await stopServing();
    close();
  }
  log.info("stopped");
  return 0;
}) satisfies CommandRun<"agent">;

interface AgentCluster {
  readonly api: KubeSender;
  readonly identify: () => Promise<NodeIdentity>;
  readonly close: () => void;
}

/** Loaded only at the first notice: the code that cordons and drains is a third of the agent's. */
function fallbackOf(
  { options, io }: AgentInput,
  parts: AgentFallbackOptions,
): LateFallback | undefined {
  const { fallback: mode } = options;
  if (mode === "None" || options.dryRun) return undefined;
  const namespace = options.namespace ?? io.env.POD_NAMESPACE ?? "lastcall";
  const { clock, rng } = io;
  const trouble = new ErrorLog({ clock, log: parts.log, metrics: parts.metrics });
  return new LateFallback({
    load: async () => {
      const { agentFallback } = await import("../assemble/agent-fallback.ts");
      return agentFallback({ mode, namespace, clock, rng, ...parts });
    },
    clock,
    onError: (error) => trouble.report("fallback", new Error(messageOf(error))),
  });
}

/**
 * In a pod, uses the small client with the pod's own token; elsewhere, for trying it out, the
 * kubeconfig.
 */
async function cluster({ options, io }: AgentInput): Promise<AgentCluster> {
  const name = options.nodeName;
  const server = apiServerOf(io.env);
  if (server === undefined || options.kubeconfig !== undefined) {
    const { connect } = await import("../cluster/connect.ts");
    const { api, close } = await connect(options, io);
    return { api, close, identify: () => readOwnNode(api, { name, clock: io.clock }) };
  }
  // Only tests set the directory of the service account; in a pod the kubelet mounts it.
  const readToken = () => readAccountToken(io.env.LASTCALL_ACCOUNT_FOLDER);
  return {
    api: new AccountApi({
      server,
      readToken,
      fetch: io.fetch,
      clock: io.clock,
      userAgent: `lastcall-agent/${version}`,
    }),
    identify: async () => ({
      name,
      uid: ownUid(await readToken(), name),
      bootID: await readBootId(),
    }),
    close: () => {},
  };
}

/** Outside a pod, no token names the node: it is read with the caller's own permissions. */
async function readOwnNode(api: KubeApi, { name, clock }: OwnName): Promise<NodeIdentity> {
  const { KubeNodeMarks } = await import("../../kube/node/node-marks.ts");
  const node = await new KubeNodeMarks({ api, clock }).read(name);
  if (node !== undefined) return { name, uid: node.uid, bootID: node.bootID };
  throw new LastcallError(
    "NOT_FOUND",
    `Cannot report notices of node ${name}: the cluster has no such node, set --node-name to the name of the Node that the agent runs on`,
  );
}

interface OwnName {
  readonly name: string;
  readonly clock: Clock;
}

interface AgentServers {
  readonly health: AgentHealth;
  readonly metrics: AgentMetrics;
  readonly feed: NoticeServer | undefined;
  readonly log: Log;
}

/**
 * All processes of a node share its addresses. If the metrics address is in use, the agent runs
 * without metrics until it is free, because notices matter more.
 */
async function serveStatus(
  { options, io }: AgentInput,
  { health, metrics, feed, log }: AgentServers,
): Promise<() => Promise<void>> {
  const serve = bunServe() ?? (await import("../../server/http-server.ts")).serve;
  const { noticeAddress } = options;
  const trouble = new ErrorLog({ clock: io.clock, log, metrics });
  const onError = (error: unknown) =>
    trouble.report("metrics", error instanceof Error ? error : new Error(messageOf(error)));
  const type = "text/plain; version=0.0.4; charset=utf-8";
  const metricsServer = new MetricsServer({
    address: options.metricsAddress,
    routes: { "/metrics": () => ({ status: 200, type, text: metrics.exposition() }) },
    ...{ serve, readPair: metricsKeyPair(options), clock: io.clock, onError },
  });
  await metricsServer.listen().catch(onError);
  metricsServer.keep();
  const routes = healthRoutes({
    problem: () => health.problem(),
    whyNotReady: () => (health.ready() ? undefined : "the metadata service has not responded yet"),
  });
  const opened = await Promise.allSettled([
    ...(feed === undefined || noticeAddress === undefined
      ? []
      : [serve(noticeAddress, { "/notice": (request) => feed.answer(request) })]),
    serve(options.healthAddress, routes),
  ]);
  const servers = opened.flatMap((one) => (one.status === "fulfilled" ? one.value : []));
  const stop = async (): Promise<void> => {
    await Promise.all([metricsServer, ...servers].map((server) => server.close()));
  };
  const failed = opened.find((one) => one.status === "rejected");
  if (failed === undefined) return stop;
  // A server that is still running would keep a process that has failed alive.
  await stop();
  throw failed.reason;
}

interface SourceSearch {
  readonly options: {
    /** The name of a cloud, or `auto`. */
    readonly cloud: string;
    readonly metadataUrl?: string | undefined;
  };
  readonly io: Pick<CommandIo, "fetch" | "clock" | "rng">;
  readonly health: AgentHealth;
}

/**
 * The notice source of the named cloud; with `auto`, that of the first cloud that responds, however
 * late.
 */
async function findNoticeSource(search: SourceSearch, signal: AbortSignal): Promise<NoticeSource> {
  const { options, io, health } = search;
  const { fetch, clock, rng } = io;
  const common = { baseUrl: options.metadataUrl, fetch, clock, rng };
  let name = options.cloud === "auto" ? undefined : options.cloud;
  while (name === undefined) {
    health.turned("cloud search");
    name = await detectCloud(common, signal);
    if (name === undefined) await clock.sleep(seconds(1), signal);
  }
  health.ended("cloud search");
  // The option accepts no other name.
  const cloud = clouds.find(({ facts }) => facts.name === name) as Cloud;
  return cloud.noticeSource(common);
}
