import { Agent } from "../src/agent/agent.ts";
import { AgentHealth } from "../src/agent/agent-status.ts";
import { NoticeReporter } from "../src/agent/notice-reporter.ts";
import { AwsNoticeSource } from "../src/cloud/aws/notice-source.ts";
import { GcpNoticeSource } from "../src/cloud/gcp/notice-source.ts";
import type { Clock } from "../src/contracts/clock.ts";
import type { NoticeSource } from "../src/contracts/cloud.ts";
import { seededRng } from "../src/core/chance/chance.ts";
import { minutes } from "../src/core/time/time.ts";
import { loadKubeAccess } from "../src/kube/access/load-kube-access.ts";
import { HttpKubeApi } from "../src/kube/http/http-api.ts";
import { realClock } from "../src/runtime/real-clock.ts";
import { AwsMetadataServer } from "../test/support/aws-metadata-server.ts";
import { GcpMetadataServer } from "../test/support/gcp-metadata-server.ts";
import type { MetadataServer } from "../test/support/metadata-server.ts";
import { waitUntil } from "../test/support/wait-until.ts";
import type { BenchNode, BenchWorld } from "./bench-world.ts";
import { nodesByName, type RawNode } from "./burst.ts";

const silent = { debug() {}, info() {}, warn() {}, error() {} };
const uncounted = { count() {} };

/** A cloud, represented by its metadata service. */
export interface BenchCloud<Server extends MetadataServer> {
  readonly start: () => Promise<Server>;
  /** The agent's notice source; `place` seeds its random numbers. */
  readonly source: (baseUrl: string, place: number) => NoticeSource;
  /** Whether an agent has started to watch this server. */
  readonly isHeard: (server: Server) => boolean;
  /** From the next response on, the server announces that the machine is preempted. */
  readonly take: (server: Server) => void;
}

/**
 * For its first two minutes an agent checks again what it has reported (`RebootRecheck`). The
 * agents of a real fleet have been up for longer than that when a notice comes.
 */
let upMs = 0;
const clock: Clock = { ...realClock, monotonic: () => realClock.monotonic() + upMs };

/** Polled every second. */
export const ec2: BenchCloud<AwsMetadataServer> = {
  start: () => new AwsMetadataServer(clock.now).start(),
  source: (baseUrl, place) => new AwsNoticeSource({ baseUrl, fetch, clock, rng: seededRng(place) }),
  isHeard: ({ seen }) => seen.some(({ url }) => url.endsWith("/spot/instance-action")),
  take: ({ values }) => {
    const time = new Date(Date.now() + 120_000).toISOString().replace(/\.\d+Z$/, "Z");
    values.set("spot/instance-action", JSON.stringify({ action: "terminate", time }));
  },
};

/** The paths that an agent on Compute Engine watches with a hanging request. */
const watchedPaths = 2;

/** Responds when the value changes. */
export const computeEngine: BenchCloud<GcpMetadataServer> = {
  start: () => new GcpMetadataServer(clock.now).start(),
  source: (baseUrl, place) => new GcpNoticeSource({ baseUrl, fetch, clock, rng: seededRng(place) }),
  isHeard: ({ held }) => held === watchedPaths,
  take: (server) => server.set("instance/preempted", "TRUE"),
};

/**
 * Runs `work` while an agent for each node is running, all in this process, each with its own
 * metadata server. The servers are in the order of the fleet.
 */
export async function withAgents<Server extends MetadataServer, T>(
  {
    world,
    fleet,
    cloud,
  }: {
    readonly world: BenchWorld;
    readonly fleet: readonly BenchNode[];
    readonly cloud: BenchCloud<Server>;
  },
  work: (servers: readonly Server[]) => Promise<T>,
): Promise<T> {
  const nodes = await nodesByName(world, fleet);
  const file = world.plane.kubeconfigFor("bench", world.benchToken);
  const access = await loadKubeAccess({ kubeconfig: file, env: {} });
  const api = new HttpKubeApi({ access, clock, userAgent: "lastcall-agents" });
  const servers = await Promise.all(nodes.map(() => cloud.start()));
  const stop = new AbortController();
  const running = nodes.map((node, place) => {
    const source = cloud.source(servers[place]?.url ?? "", place);
    return agentOf(node, { api, source, place }).run(stop.signal);
  });
  try {
    await waitUntil(async () => servers.every(cloud.isHeard), {
      what: "every agent listens",
      timeoutMs: 60_000,
    });
    upMs += minutes(3);
    return await work(servers);
  } finally {
    stop.abort();
    await Promise.allSettled(running);
    await Promise.all(servers.map((server) => server.stop()));
    api.close();
  }
}

function agentOf(
  { metadata, status }: RawNode,
  parts: { readonly api: HttpKubeApi; readonly source: NoticeSource; readonly place: number },
): Agent {
  const { api, source, place } = parts;
  const { name, uid } = metadata;
  const identity = { name, uid, bootID: status.nodeInfo.bootID };
  return new Agent({
    findSource: () => Promise.resolve(source),
    reporter: new NoticeReporter({ api, identify: () => Promise.resolve(identity), log: silent }),
    ...{ health: new AgentHealth(clock), clock, rng: seededRng(place), log: silent },
    ...{ metrics: uncounted, dryRun: false },
  });
}
