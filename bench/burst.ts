import { waitUntil } from "../test/support/wait-until.ts";
import type { Answered } from "./audit-trail.ts";
import { type BenchNode, type BenchWorld, benchUser, controllerUser } from "./bench-world.ts";
import { type RawCall, RawClient } from "./raw-client.ts";

/** Since the first request of the burst was sent, by the API server's audit log. */
export interface BurstTimes {
  /** Every node's cordon is written. */
  readonly cordonedMs: number;
  /** The last pod's eviction is accepted. */
  readonly evictedMs: number;
}

export interface Burst {
  readonly times: BurstTimes;
  /** Requests of each kind that the user has sent for it. */
  readonly requests: Readonly<Record<string, number>>;
}

/** The limit: one PATCH a node, then one eviction a pod, by so many parallel connections. */
export async function rawBurst(
  world: BenchWorld,
  fleet: readonly BenchNode[],
  connections: number,
): Promise<Burst> {
  const client = new RawClient(world.plane, { token: world.benchToken, connections });
  const startAt = Date.now();
  await client.sendAll(fleet.map(({ name }) => cordonCall(name)));
  await client.sendAll(fleet.flatMap(({ pods }) => pods).map(evictionCall));
  client.close();
  return burstSince({ world, fleet, startAt, user: benchUser });
}

/**
 * The same where each node is named only as its word comes, by `read`, which ends with the last.
 */
export async function rawBurstByWord(
  world: BenchWorld,
  fleet: readonly BenchNode[],
  how: {
    readonly connections: number;
    readonly startAt: number;
    readonly read: (onNotice: (node: BenchNode) => void) => Promise<void>;
  },
): Promise<Burst> {
  const { connections, startAt, read } = how;
  const client = new RawClient(world.plane, { token: world.benchToken, connections });
  await read(({ name, pods }) => {
    client.push(cordonCall(name), "First");
    for (const pod of pods) client.push(evictionCall(pod), "Later");
  });
  await client.whenDone();
  client.close();
  return burstSince({ world, fleet, startAt, user: benchUser });
}

export type Cause = "SpotInterruption" | "Manual";

/**
 * The requests that a notice cannot do without, by a client that does nothing else: one Departure a
 * node is made, and as each is there, its node is cordoned, its pods are listed and evicted. What a
 * controller takes longer than this is its own work; what this takes longer than the raw limit is
 * the API server's.
 */
export async function bareBurst(
  world: BenchWorld,
  fleet: readonly BenchNode[],
  connections: number,
): Promise<Burst> {
  const bodies = await departuresOf(world, fleet, "SpotInterruption");
  const client = new RawClient(world.plane, { token: world.benchToken, connections });
  const maker = new RawClient(world.plane, { token: world.benchToken, connections: 32 });
  const startAt = Date.now();
  const nodes = bodies.map((body, place) => ({ body, node: fleet[place] as BenchNode })).values();
  const work = async (): Promise<void> => {
    for (const { body, node } of nodes) {
      await maker.sendAll([departureCall(body())]);
      client.push(cordonCall(node.name), "First");
      client.push(podsCall(node.name), "Later");
      for (const pod of node.pods) client.push(evictionCall(pod), "Later");
    }
  };
  await Promise.all(Array.from({ length: 32 }, work));
  await client.whenDone();
  client.close();
  maker.close();
  return burstSince({ world, fleet, startAt, user: benchUser });
}

/**
 * The same by a running controller: one Departure a node, as agents or a person would make them.
 */
export async function departureBurst(
  world: BenchWorld,
  fleet: readonly BenchNode[],
  cause: Cause,
): Promise<Burst & { readonly startAt: number }> {
  const bodies = await departuresOf(world, fleet, cause);
  const client = new RawClient(world.plane, { token: world.benchToken, connections: 32 });
  const startAt = Date.now();
  await client.sendAll(bodies.map((body) => departureCall(body())));
  client.close();
  const burst = await burstSince({ world, fleet, startAt, user: controllerUser });
  return { ...burst, startAt };
}

/** For so long the controller has asked for nothing but its Lease: what it had to do is done. */
const peaceMs = 5000;

/** The machines go, and with them the nodes: the departures end, and the next burst has peace. */
export async function endNodes(world: BenchWorld, fleet: readonly BenchNode[]): Promise<void> {
  const client = new RawClient(world.plane, { token: world.plane.adminToken, connections: 16 });
  const calls = fleet.map(({ name }) => ({ method: "DELETE", path: `/api/v1/nodes/${name}` }));
  await client.sendAll(calls, [404]);
  client.close();
  await waitUntil(
    async () => {
      const asked = await world.audit.of(controllerUser);
      const sinceAt = Date.now() - peaceMs;
      return !asked.some((one) => one.resource !== "leases" && one.receivedAt > sinceAt);
    },
    {
      what: "the controller has done with the nodes that have gone",
      timeoutMs: 180_000,
      intervalMs: peaceMs,
      signal: world.plane.signal,
    },
  );
}

function departureCall(body: object): RawCall {
  return { method: "POST", path: "/apis/lastcall.dev/v1alpha1/departures", body };
}

function podsCall(node: string): RawCall {
  return { path: `/api/v1/pods?fieldSelector=spec.nodeName%3D${node}` };
}

function cordonCall(name: string): RawCall {
  return {
    method: "PATCH",
    path: `/api/v1/nodes/${name}`,
    contentType: "application/merge-patch+json",
    body: { spec: { unschedulable: true } },
  };
}

function evictionCall(name: string): RawCall {
  const namespace = "default";
  return {
    method: "POST",
    path: `/api/v1/namespaces/${namespace}/pods/${name}/eviction`,
    body: { apiVersion: "policy/v1", kind: "Eviction", metadata: { name, namespace } },
  };
}

/** Made late, so that the instants in them are the instant of sending. */
async function departuresOf(
  world: BenchWorld,
  fleet: readonly BenchNode[],
  cause: Cause,
): Promise<readonly (() => object)[]> {
  const nodes = await nodesByName(world, fleet);
  return nodes.map((node) => () => departureOf(node, cause));
}

/** The Node objects of a fleet, in its order. */
export async function nodesByName(
  { plane }: BenchWorld,
  fleet: readonly BenchNode[],
): Promise<readonly RawNode[]> {
  const { body } = await plane.request({ path: "/api/v1/nodes" });
  const byName = new Map<string, RawNode>(
    body.items.map((node: RawNode) => [node.metadata.name, node]),
  );
  return fleet.map(({ name }) => {
    const node = byName.get(name);
    if (node === undefined) throw new Error(`Cannot find node ${name}: it is gone, wanted it`);
    return node;
  });
}

export interface RawNode {
  readonly metadata: { readonly name: string; readonly uid: string };
  readonly spec: { readonly providerID: string };
  readonly status: { readonly nodeInfo: { readonly bootID: string } };
}

function departureOf({ metadata, spec, status }: RawNode, cause: Cause): object {
  const { name, uid } = metadata;
  const now = Date.now();
  const when =
    cause === "Manual"
      ? { departAt: new Date(now).toISOString() }
      : {
          noticedAt: new Date(now).toISOString(),
          deadlineAt: new Date(now + 120_000).toISOString(),
          source: "agent",
        };
  const { providerID } = spec;
  return {
    apiVersion: "lastcall.dev/v1alpha1",
    kind: "Departure",
    metadata: { name: `${name}-${uid.slice(0, 8)}` },
    spec: { node: { name, uid, providerID, bootID: status.nodeInfo.bootID }, cause, ...when },
  };
}

/** The log is read only when all is over, since reading it takes a share of two cores. */
export async function burstSince(about: {
  readonly world: BenchWorld;
  readonly fleet: readonly BenchNode[];
  readonly startAt: number;
  readonly user: string;
}): Promise<Burst> {
  const { world, fleet, startAt, user } = about;
  const nodes = new Set(fleet.map(({ name }) => name));
  const pods = new Set(fleet.flatMap((node) => node.pods));
  return await waitUntil(
    async () => {
      const since = (await world.audit.of(user)).filter((one) => one.receivedAt >= startAt - 1);
      const cordons = firstOfEach(since.filter((one) => isCordon(one) && nodes.has(one.name)));
      const evictions = firstOfEach(since.filter((one) => isEviction(one) && pods.has(one.name)));
      if (cordons.size < nodes.size || evictions.size < pods.size) {
        throw new Error(`${cordons.size} cordons and ${evictions.size} evictions are written`);
      }
      const times = {
        cordonedMs: Math.max(...cordons.values()) - startAt,
        evictedMs: Math.max(...evictions.values()) - startAt,
      };
      return { times, requests: countByKind(since) };
    },
    {
      what: `${pods.size} pods of ${nodes.size} nodes are evicted`,
      timeoutMs: 180_000,
      intervalMs: 8000,
      signal: world.plane.signal,
    },
  );
}

/** By node, when its cordon was written; waits for all of the fleet. */
export function cordonsSince(about: {
  readonly world: BenchWorld;
  readonly fleet: readonly BenchNode[];
  readonly startAt: number;
  readonly user: string;
}): Promise<ReadonlyMap<string, number>> {
  const { world, fleet, startAt, user } = about;
  const nodes = new Set(fleet.map(({ name }) => name));
  return waitUntil(
    async () => {
      const since = (await world.audit.of(user)).filter((one) => one.receivedAt >= startAt - 1);
      const cordons = firstOfEach(since.filter((one) => isCordon(one) && nodes.has(one.name)));
      return cordons.size === nodes.size && cordons;
    },
    {
      what: `${nodes.size} nodes are cordoned`,
      timeoutMs: 60_000,
      intervalMs: 2000,
      signal: world.plane.signal,
    },
  );
}

function isCordon({ verb, resource, subresource, code }: Answered): boolean {
  return verb === "patch" && resource === "nodes" && subresource === "" && code < 300;
}

function isEviction({ resource, subresource, code }: Answered): boolean {
  return resource === "pods" && subresource === "eviction" && code < 300;
}

function firstOfEach(answers: readonly Answered[]): ReadonlyMap<string, number> {
  const first = new Map<string, number>();
  for (const { name, answeredAt } of answers) {
    first.set(name, Math.min(answeredAt, first.get(name) ?? answeredAt));
  }
  return first;
}

/** Requests of each verb and resource. */
export function countByKind(answers: readonly Answered[]): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const { verb, resource, subresource, code } of answers) {
    const refused = code >= 300 ? ` ${code}` : "";
    const kind = `${verb} ${resource}${subresource === "" ? "" : `/${subresource}`}${refused}`;
    counts[kind] = (counts[kind] ?? 0) + 1;
  }
  return counts;
}

/** The middle one by `of`, of an odd number of rounds. */
export function median<T>(rounds: readonly T[], of: (round: T) => number): T {
  const sorted = rounds.toSorted((a, b) => of(a) - of(b));
  return sorted[Math.floor((sorted.length - 1) / 2)] as T;
}
