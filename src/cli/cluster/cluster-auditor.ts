import { addUp, auditFleet, type ReadinessSum, spotReadiness, sumUp } from "../../audit/audit.ts";
import { readFleet } from "../../audit/fleet.ts";
import {
  type AuditNode,
  distinctNodes,
  platformsOfNodes,
  readNode,
} from "../../audit/objects/audit-node.ts";
import { leanObject, type Manifest, readManifest } from "../../audit/objects/manifest.ts";
import type { KubeApi } from "../../contracts/kube-api.ts";
import type {
  AuditTarget,
  WorkloadAuditor,
  WorkloadVerdict,
} from "../../contracts/workload-auditor.ts";
import { isFields } from "../../core/json/json-field.ts";
import { isLastcallError } from "../../errors.ts";
import { listPages } from "../../kube/watch/collection.ts";
import type { AuditedKind } from "./audited-kind.ts";
import { clusterKinds, namespacedKinds } from "./read-cluster.ts";

/**
 * The audit of a live cluster for a process that must stay small and responsive: it reads one
 * namespace after another, audits it, keeps the sum and drops the rest. Pods are not read, so it
 * does not see those that a custom resource creates.
 */
export class ClusterAuditor implements WorkloadAuditor {
  readonly #api: KubeApi;
  readonly #pause: () => Promise<void>;

  /** `pause` yields to more urgent work. It is called between namespaces. */
  constructor(api: KubeApi, pause: () => Promise<void>) {
    this.#api = api;
    this.#pause = pause;
  }

  async judge(
    targets: readonly AuditTarget[],
    signal: AbortSignal,
  ): Promise<readonly WorkloadVerdict[]> {
    if (targets.length === 0) return [];
    const [nodeKind, classKind] = clusterKinds as readonly [AuditedKind, AuditedKind];
    const nodes = new Map<string, AuditNode>();
    for await (const node of this.#objectsOf(nodeKind, signal)) {
      nodes.set(node.name, readNode(node));
    }
    const classes: Manifest[] = [];
    for await (const one of this.#objectsOf(classKind, signal)) classes.push(one);
    const sums = targets.map((target) => new TargetSum(target, nodes));
    for await (const batch of namespaceBatches(this.#api, namespacedKinds, signal)) {
      const objects = batch.map((json) => readManifest({ json, origin: "Recorded" }, "default"));
      for (const sum of sums) {
        sum.take([...classes, ...objects]);
        await this.#pause();
      }
    }
    return sums.map((sum) => sum.verdict());
  }

  async *#objectsOf(
    { path, apiVersion, kind }: AuditedKind,
    signal: AbortSignal,
  ): AsyncGenerator<Manifest> {
    for await (const page of listPages(this.#api, path, { limit: 100, urgency: "Later", signal })) {
      for (const item of page.filter(isFields)) {
        yield readManifest({ json: { ...item, apiVersion, kind } }, "");
      }
    }
  }
}

/** The sum so far for one policy. */
class TargetSum {
  readonly #policy: string;
  readonly #nodes: readonly AuditNode[];
  readonly #platforms: ReturnType<typeof platformsOfNodes>;
  #sum: ReadinessSum | undefined;

  constructor({ policy, nodes }: AuditTarget, known: ReadonlyMap<string, AuditNode>) {
    this.#policy = policy;
    // A policy's nodes count as Spot because they are released, whatever their labels say.
    const own = nodes.flatMap(({ name }) => known.get(name) ?? []);
    this.#nodes = distinctNodes(own.map((node) => ({ ...node, spot: true })));
    this.#platforms = platformsOfNodes(this.#nodes, new Map());
  }

  take(manifests: readonly Manifest[]): void {
    if (this.#nodes.length === 0) return;
    const report = auditFleet(readFleet(manifests, this.#nodes), this.#platforms);
    const sum = sumUp(report);
    this.#sum = this.#sum === undefined ? sum : addUp(this.#sum, sum);
  }

  verdict(): WorkloadVerdict {
    const policy = this.#policy;
    const sum = this.#sum;
    if (this.#nodes.length === 0 || sum === undefined) {
      const none = this.#nodes.length === 0;
      return {
        policy,
        condition: {
          type: "SpotReady",
          status: "Unknown",
          reason: none ? "NoNodes" : "NoWorkloads",
          message: none ? "No node is under this policy." : "No workload can be judged.",
        },
        findings: [],
        workloads: [],
      };
    }
    return {
      policy,
      condition: { type: "SpotReady", ...spotReadiness(sum) },
      findings: sum.counts,
      workloads: sum.platforms.map(({ name }) => {
        const cut = sum.cut[name] ?? 0;
        return { platform: name, cut, whole: (sum.judged[name] ?? 0) - cut };
      }),
    };
  }
}

/** Small pages, because one page of each kind is in memory at a time. */
const pageSize = 100;

/**
 * Yields the objects of some namespaced kinds, one namespace after another, trimmed. An API server
 * lists in the order of `namespace/name`, so all kinds can be read side by side, and memory holds
 * one page of each kind and one namespace, however large the cluster is. Kinds that the server does
 * not know are skipped.
 */
export async function* namespaceBatches(
  api: KubeApi,
  kinds: readonly AuditedKind[],
  signal: AbortSignal,
): AsyncGenerator<readonly unknown[]> {
  const streams = kinds.map((kind) => new ObjectStream(objectsOf(api, kind, signal)));
  await Promise.all(streams.map((stream) => stream.advance()));
  for (;;) {
    const keys = streams.flatMap((stream) => stream.namespaceKey ?? []);
    const key = keys.sort().at(0);
    if (key === undefined) return;
    const batch: unknown[] = [];
    for (const stream of streams) {
      while (stream.namespaceKey === key) {
        batch.push(stream.head);
        await stream.advance();
      }
    }
    yield batch;
  }
}

type Lean = ReturnType<typeof leanObject>;

class ObjectStream {
  readonly #objects: AsyncGenerator<Lean>;
  head: Lean | undefined;

  constructor(objects: AsyncGenerator<Lean>) {
    this.#objects = objects;
  }

  async advance(): Promise<void> {
    const next = await this.#objects.next();
    this.head = next.done === true ? undefined : next.value;
  }

  /** In the server's order: `shop-eu/` comes before `shop/`. */
  get namespaceKey(): string | undefined {
    if (this.head === undefined) return undefined;
    const { namespace } = this.head.metadata as { namespace?: string };
    return `${namespace ?? ""}/`;
  }
}

async function* objectsOf(
  api: KubeApi,
  { path, apiVersion, kind }: AuditedKind,
  signal: AbortSignal,
): AsyncGenerator<Lean> {
  try {
    for await (const page of listPages(api, path, { limit: pageSize, urgency: "Later", signal })) {
      const lean = page.filter(isFields).map((item) => leanObject({ ...item, apiVersion, kind }));
      yield* lean;
    }
  } catch (error) {
    if (isLastcallError(error) && error.code === "NOT_FOUND") return;
    throw error;
  }
}
