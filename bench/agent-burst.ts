import { Agent } from "../src/agent/agent.ts";
import { AgentHealth } from "../src/agent/agent-health.ts";
import { DepartureDesk } from "../src/agent/departure-desk.ts";
import { GcpNoticeSource } from "../src/cloud/gcp/notice-source.ts";
import { seededRng } from "../src/core/rng.ts";
import { HttpKubeApi } from "../src/kube/http-api.ts";
import { loadKubeAccess } from "../src/kube/kubeconfig.ts";
import { realClock } from "../src/runtime/real-clock.ts";
import { GcpMetadataServer } from "../test/support/gcp-metadata-server.ts";
import { waitUntil } from "../test/support/wait-until.ts";
import { type BenchNode, type BenchWorld, controllerUser } from "./bench-world.ts";
import { type Burst, burstSince, nodesByName, type RawNode } from "./burst.ts";

const silent = { debug() {}, info() {}, warn() {}, error() {} };
const uncounted = { count() {} };
/** The paths that an agent on Compute Engine watches by a request that hangs. */
const watchedPaths = 2;

/**
 * The same as by Departures, from where the cloud says it: an agent for each node, all in this process,
 * each at a metadata server of its own. Counted from the instant at which the notices can be read.
 */
export async function agentBurst(world: BenchWorld, fleet: readonly BenchNode[]): Promise<Burst> {
  const nodes = await nodesByName(world, fleet);
  const file = world.plane.kubeconfigFor("bench", world.benchToken);
  const access = await loadKubeAccess({ kubeconfig: file, env: {} });
  const api = new HttpKubeApi({ access, clock: realClock, userAgent: "lastcall-agents" });
  const servers = await Promise.all(nodes.map(() => new GcpMetadataServer(realClock.now).start()));
  const stop = new AbortController();
  const running = nodes.map((node, at) =>
    agentOf(node, { api, baseUrl: servers[at]?.url ?? "" }).run(stop.signal),
  );
  try {
    await waitUntil(async () => servers.every(({ held }) => held === watchedPaths), {
      what: "every agent listens",
      timeoutMs: 60_000,
    });
    const startAt = Date.now();
    for (const server of servers) server.set("instance/preempted", "TRUE");
    return await burstSince({ world, fleet, startAt, user: controllerUser });
  } finally {
    stop.abort();
    await Promise.allSettled(running);
    await Promise.all(servers.map((server) => server.stop()));
    api.close();
  }
}

function agentOf(
  { metadata, status }: RawNode,
  at: { readonly api: HttpKubeApi; readonly baseUrl: string },
): Agent {
  const clock = realClock;
  const rng = seededRng(1);
  const { name, uid } = metadata;
  const identity = { name, uid, bootID: status.nodeInfo.bootID };
  const source = new GcpNoticeSource({ baseUrl: at.baseUrl, fetch, clock, rng });
  return new Agent({
    findSource: () => Promise.resolve(source),
    desk: new DepartureDesk({ api: at.api, identify: () => Promise.resolve(identity) }),
    ...{ health: new AgentHealth(clock), clock, rng, log: silent, metrics: uncounted },
    dryRun: false,
  });
}
