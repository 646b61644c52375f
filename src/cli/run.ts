import { firingAlerts } from "../actions/alertmanager.ts";
import { parsePolicyObject } from "../config/parse-policy-object.ts";
import { sentenceOf } from "../config/problem.ts";
import type { KubeApi, KubeObject } from "../contracts/kube-api.ts";
import type { Leadership } from "../contracts/leadership.ts";
import type { Log, Metrics } from "../contracts/telemetry.ts";
import { Controller } from "../controller/controller.ts";
import { cronProblem } from "../core/cron-window.ts";
import { messageOf } from "../errors.ts";
import { KubeDepartureStore } from "../kube/departure-store.ts";
import { KubeEventSink } from "../kube/event-sink.ts";
import { KubeFleet, type PolicyReading } from "../kube/fleet.ts";
import { KubeGateSource } from "../kube/gate-source.ts";
import { KubeNodeMarks } from "../kube/node-marks.ts";
import { KubeNodePods } from "../kube/node-pods.ts";
import { createLog } from "../runtime/log.ts";
import { holderIsDead, processIdentity } from "../runtime/process-identity.ts";
import { serve } from "../server/http-server.ts";
import { PrometheusMetrics } from "../server/metrics.ts";
import { cloudReleasers } from "./cloud-releasers.ts";
import type { CommandIo } from "./command-io.ts";
import type { CommandInput, CommandRun } from "./command-spec.ts";
import { connect } from "./connect.ts";
import { readPolicyFiles } from "./policy-files.ts";

type Options = CommandInput<"run">["options"];

/** The controller, until it is interrupted. */
export const runController: CommandRun<"run"> = async ({ options, io }) => {
  const log = createLog({
    level: options.logLevel,
    format: options.logFormat,
    write: io.err,
    clock: io.clock,
  });
  const fixedPolicies =
    options.filename.length === 0
      ? undefined
      : (await readPolicyFiles(options.filename, io)).policies;
  const metrics = new PrometheusMetrics();
  const { api, namespace, close } = await connect(options, io);
  const identity = processIdentity(io.env.POD_NAME);
  const voice = { log, metrics, events: eventSink({ api, io, identity, metrics }) };
  const controller = new Controller({
    fleet: new KubeFleet({
      api,
      clock: io.clock,
      rng: io.rng,
      readPolicy,
      fixedPolicies,
      onTrouble: (error) => {
        metrics.count("lastcall_errors_total", { code: error.code });
        log.warn("watch-trouble", { code: error.code, error: error.message });
      },
    }),
    gates: new KubeGateSource({
      api,
      firingAlerts: (question, signal) =>
        firingAlerts(question, { fetch: io.fetch, clock: io.clock }, signal),
      onTrouble: (error) => log.warn("gate-trouble", { error: messageOf(error) }),
    }),
    hands: {
      marks: new KubeNodeMarks(api, io.clock),
      pods: new KubeNodePods({ api, clock: io.clock, rng: io.rng }),
      store: new KubeDepartureStore(api),
      releaserFor: await cloudReleasers(options, io),
    },
    voice,
    leadership: await leadershipOf({ options, io, api, namespace, identity, log }),
    clock: io.clock,
    rng: io.rng,
    self: io.env.POD_UID,
    dryRun: options.dryRun,
  });
  const servers = await serveStatus(options, { controller, metrics });
  log.info("started", { identity, namespace, dryRun: options.dryRun });
  try {
    await controller.run(io.signal);
    log.info("stopped");
    return 0;
  } finally {
    await Promise.all(servers.map((server) => server.close()));
    close();
  }
};

function eventSink(tools: {
  readonly api: KubeApi;
  readonly io: CommandIo;
  readonly identity: string;
  readonly metrics: Metrics;
}): KubeEventSink {
  const { api, io, identity, metrics } = tools;
  return new KubeEventSink({
    api,
    clock: io.clock,
    instance: identity,
    onLost: () => metrics.count("lastcall_errors_total", { code: "EVENT_LOST" }),
  });
}

/** The CRD keeps bad policies out; what an older CRD let in is named and stops its own nodes only. */
function readPolicy(object: KubeObject): PolicyReading {
  const parsed = parsePolicyObject(object, { cronProblem, unknownFields: "Warn" });
  if ("policy" in parsed) return { policy: parsed.policy };
  const name = object.metadata?.name ?? "";
  return { name, problem: parsed.problems.map(sentenceOf).join("; ") };
}

async function leadershipOf(tools: {
  readonly options: Options;
  readonly io: CommandIo;
  readonly api: KubeApi;
  readonly namespace: string;
  readonly identity: string;
  readonly log: Log;
}): Promise<Leadership> {
  const { options, io, api, namespace, identity, log } = tools;
  if (!options.leaderElect || options.dryRun) {
    const { AlwaysLeading } = await import("../controller/always-leading.ts");
    return new AlwaysLeading();
  }
  const { LeaderLease } = await import("../kube/leader-lease.ts");
  return new LeaderLease({
    api,
    clock: io.clock,
    rng: io.rng,
    namespace: options.namespace ?? namespace,
    name: "lastcall",
    identity,
    holderIsDead,
    onTrouble: (error) => log.warn("lease-trouble", { error: messageOf(error) }),
  });
}

function serveStatus(
  options: Options,
  parts: { readonly controller: Controller; readonly metrics: PrometheusMetrics },
) {
  const { health } = parts.controller;
  return Promise.all([
    serve(options.metricsAddress, {
      "/metrics": async () => ({ status: 200, ...(await parts.metrics.exposition()) }),
    }),
    serve(options.healthAddress, {
      "/healthz": () => {
        const problem = health.problem();
        return problem === undefined
          ? { status: 200, text: "ok\n" }
          : { status: 503, text: `${problem}\n` };
      },
      "/readyz": () =>
        health.ready()
          ? { status: 200, text: "ok\n" }
          : { status: 503, text: "the first lists are not complete\n" },
    }),
  ]);
}
