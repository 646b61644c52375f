import type { ModelObject } from "../../../src/sim/api/store/object-store.ts";
import { drawNode, type FaultKind, faultKind } from "../fault.ts";
import type { Stage } from "../stage.ts";

interface Taint {
  readonly key: string;
  readonly effect: string;
}

/** Others who drain, mark and remove nodes, and who place pods on them. */
export const rivalFaults: Readonly<Record<string, FaultKind>> = {
  "drained-by-hand": faultKind({
    says: "somebody runs kubectl drain on a node, and later kubectl uncordon",
    draw: ({ draw, nodes }) => ({ node: drawNode({ draw, nodes }) }),
    begin: (stage, { node }) => {
      const name = stage.machineName(node);
      const uid = uidOf(stage, name);
      if (uid === undefined) return undefined;
      stage.patch("nodes", name, { spec: { unschedulable: true } });
      for (const { metadata } of stage.cluster.api.context.store.collection("pods").onNode(name)) {
        evict(stage, metadata);
      }
      return () => {
        if (uidOf(stage, name) === uid) {
          stage.patch("nodes", name, { spec: { unschedulable: null } });
        }
      };
    },
  }),
  "autoscaler-mark": faultKind({
    says: "another tool marks a node for its own removal, and removes it or thinks again",
    draw: ({ draw, nodes }) => ({
      node: drawNode({ draw, nodes }),
      // cluster-autoscaler and Karpenter; both taints have the effect NoSchedule.
      key: draw.pick("ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted"),
      end: draw.pick<"Removed" | "Kept">("Removed", "Kept"),
    }),
    begin: (stage, { node, key, end }) => {
      const name = stage.machineName(node);
      const uid = uidOf(stage, name);
      const { cloud } = stage.cluster;
      const id = cloud.machine(name)?.id;
      if (uid === undefined || cloud.machine(name)?.state !== "Running") return undefined;
      setTaints(stage, name, (taints) => [...taints, { key, effect: "NoSchedule" }]);
      return () => {
        if (uidOf(stage, name) !== uid || cloud.machine(name)?.id !== id) return;
        if (end === "Removed" && cloud.machine(name)?.state === "Running") cloud.take(name);
        else setTaints(stage, name, (taints) => taints.filter((taint) => taint.key !== key));
      };
    },
  }),
  "late-binding": faultKind({
    // Between the scheduler's choice and the binding a pod waits for its volumes.
    says: "pods that a scheduler had placed before a cordon are bound after it",
    draw: ({ draw }) => ({
      after: draw.pick<number | "Drained">(1, 1500, 10_000, 60_000, "Drained", "Drained"),
      graceSeconds: draw.pick(5, 60),
    }),
    begin: (stage, { after, graceSeconds }) => {
      let count = 0;
      const bindNow = (node: string): void => {
        count += 1;
        bind(stage, { pod: `late-${stage.clock.now()}-${count}`, node, graceSeconds });
      };
      const { store } = stage.cluster.api.context;
      if (after === "Drained") {
        // Just when the drain has been written down as done, and the release comes next.
        return store.collection("departures.lastcall.dev").subscribe(({ object, previous }) => {
          const phases = [previous, object].map((one) => one && phaseOf(one));
          if (phases[0] !== "Draining" || phases[1] !== "Releasing") return;
          const { node } = object.spec as { node: { name: string } };
          queueMicrotask(() => bindNow(node.name));
        });
      }
      return store.collection("nodes").subscribe(({ object, previous }) => {
        const { name } = object.metadata;
        if (!isCordoned(object) || previous === undefined || isCordoned(previous)) return;
        stage.after(after, () => bindNow(name));
      });
    },
  }),
  "second-policy": faultKind({
    says: "somebody creates a second policy like the first, with a higher weight, and deletes it",
    draw: () => ({}),
    begin: (stage) => {
      const found = stage.get("policies", "spot");
      if (found === undefined) return undefined;
      const { apiVersion, kind, spec } = found;
      const own = { ...(spec as object), weight: 10 };
      stage.create("policies", { apiVersion, kind, metadata: { name: "spot-2" }, spec: own });
      return () => stage.delete("policies", "spot-2");
    },
  }),
};

function isCordoned({ spec }: ModelObject): boolean {
  return (spec as { unschedulable?: boolean } | undefined)?.unschedulable === true;
}

function phaseOf({ status }: ModelObject): string | undefined {
  return (status as { phase?: string } | undefined)?.phase;
}

function uidOf(stage: Stage, node: string): string | undefined {
  return stage.get("nodes", node)?.metadata.uid;
}

function setTaints(
  stage: Stage,
  name: string,
  change: (taints: readonly Taint[]) => readonly Taint[],
): void {
  const { taints = [] } = (stage.get("nodes", name)?.spec ?? {}) as { taints?: readonly Taint[] };
  stage.patch("nodes", name, { spec: { taints: change(taints) } });
}

function evict(stage: Stage, { namespace = "", name }: { namespace?: string; name: string }): void {
  const body = { apiVersion: "policy/v1", kind: "Eviction", metadata: { name, namespace } };
  const path = `/api/v1/namespaces/${namespace}/pods/${name}/eviction`;
  stage.cluster.api.handle({ method: "POST", path, body });
}

function bind(
  stage: Stage,
  { pod, node, graceSeconds }: { pod: string; node: string; graceSeconds: number },
): void {
  if (stage.get("nodes", node) === undefined) return;
  const containers = [{ name: "main", image: "app:1", resources: { requests: { cpu: "10m" } } }];
  const path = "/api/v1/namespaces/default/pods";
  // Several faults of this kind may answer to the same cordon.
  let name = pod;
  while (stage.cluster.api.handle({ method: "GET", path: `${path}/${name}` }).status === 200) {
    name += "-too";
  }
  stage.post(path, {
    metadata: { name, labels: { app: "late" } },
    spec: { nodeName: node, terminationGracePeriodSeconds: graceSeconds, containers },
  });
}
