import { instant } from "../src/core/time/time.ts";
import { realClock } from "../src/runtime/real-clock.ts";
import { waitUntil } from "../test/support/wait-until.ts";
import type { Answered } from "./audit-trail.ts";
import { type BenchNode, type BenchWorld, benchUser, controllerUser } from "./bench-world.ts";
import { type RawCall, RawClient } from "./raw-client.ts";

/** Since the first request of the burst was sent; from the API server's audit log. */
export interface BurstTimes {
  /** When every node's cordon was written. */
  readonly cordonedMs: number;
  /** When the last pod's eviction was accepted. */
  readonly evictedMs: number;
}

export interface Burst {
  readonly times: BurstTimes;
  /** The requests that the user sent for it, by kind. */
  readonly requests: Readonly<Record<string, number>>;
}

/**
 * The raw limit: one PATCH per node, then one eviction per pod, over this many parallel
 * connections.
 */
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
 * The same, but each node becomes known only when `read` delivers its notice; `read` returns after
 * the last one.
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
 * Only the requests that a notice needs, by a client that does nothing else: it creates one
 * Departure per node, and after each it cordons the node, lists its pods and evicts them. The time
 * that a controller takes beyond this is its own work; the time that this takes beyond the raw
 * limit is the API server's.
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
 * The same by a running controller: one Departure per node, as agents or a person would create
 * them, evenly spread over `withinMs`. `noticedAt` has the instant of each notice, in the fleet's
 * order.
 */
export async function departureBurst(
  world: BenchWorld,
  fleet: readonly BenchNode[],
  { cause, withinMs = 0 }: { readonly cause: Cause; readonly withinMs?: number },
): Promise<Burst & { readonly noticedAt: readonly number[] }> {
  const bodies = await departuresOf(world, fleet, cause);
  const client = new RawClient(world.plane, { token: world.benchToken, connections: 32 });
  const startAt = Date.now();
  const noticedAt: number[] = [];
  for (const [place, body] of bodies.entries()) {
    await realClock.sleepUntil(instant(startAt + (place * withinMs) / bodies.length));
    noticedAt.push(Date.now());
    client.push(departureCall(body()), "Later");
  }
  await client.whenDone();
  client.close();
  const burst = await burstSince({ world, fleet, startAt, user: controllerUser });
  return { ...burst, noticedAt };
}

/** If the controller has requested nothing but its Lease for this long, its work is done. */
const peaceMs = 5000;

/** Deletes the nodes, so that their departures end and do not disturb the next burst. */
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

/** Each is created on call, so that its instants are those of sending. */
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

/** Reads the log only after the burst, because reading it takes a share of two cores. */
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

/** When each node was cordoned; waits for the whole fleet. */
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

/** The number of requests by verb and resource. */
export function countByKind(answers: readonly Answered[]): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const { verb, resource, subresource, code } of answers) {
    const refused = code >= 300 ? ` ${code}` : "";
    const kind = `${verb} ${resource}${subresource === "" ? "" : `/${subresource}`}${refused}`;
    counts[kind] = (counts[kind] ?? 0) + 1;
  }
  return counts;
}

/** The median round by `of`; of an even number, the lower one in the middle. */
export function median<T>(rounds: readonly T[], of: (round: T) => number): T {
  const sorted = rounds.toSorted((a, b) => of(a) - of(b));
  return sorted[Math.floor((sorted.length - 1) / 2)] as T;
}
