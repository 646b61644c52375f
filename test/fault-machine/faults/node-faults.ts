import type { ModelObject } from "../../../src/sim/api/store/object-store.ts";
import { gkeShutdownGrace } from "../../../src/sim/cluster-controllers/kubelet.ts";
import { drawNode, type FaultKind, faultKind } from "../fault.ts";
import type { Stage } from "../stage.ts";

/** What happens to machines and their kubelets. */
export const nodeFaults: Readonly<Record<string, FaultKind>> = {
  partition: faultKind({
    says: "the kubelets of some nodes are cut off",
    draw: ({ draw, nodes }) => ({
      from: drawNode({ draw, nodes }),
      count: draw.between(1, nodes),
    }),
    begin: (stage, { from, count }) => {
      const { cloud, kubelet } = stage.cluster;
      const cut = Array.from({ length: count }, (_, index) =>
        stage.machineName(index === 0 ? from : Math.max(0, from) + index),
      );
      const ids = cut.map((name) => cloud.machine(name)?.id);
      for (const name of cut) kubelet.powerOff(name);
      return () => {
        for (const [index, name] of cut.entries()) {
          const machine = cloud.machine(name);
          if (machine?.id === ids[index] && machine?.state === "Running") kubelet.boot(name);
        }
      };
    },
  }),
  reboot: faultKind({
    says: "a machine reboots",
    draw: ({ draw, nodes }) => ({ node: drawNode({ draw, nodes }) }),
    begin: (stage, { node }) => {
      const name = stage.machineName(node);
      const machine = stage.cluster.cloud.machine(name);
      if (machine?.state !== "Running") return undefined;
      const { id } = machine;
      stage.cluster.kubelet.powerOff(name);
      stage.agents.powerOff(name);
      stage.after(40_000, () => {
        const now = stage.cluster.cloud.machine(name);
        if (now?.id !== id || now.state !== "Running") return;
        const bootID = `boot-${id.slice(-4)}-${stage.clock.now()}`;
        setBootId(stage, name, bootID);
        stage.cluster.kubelet.boot(name);
        stage.agents.bootAgain(name, bootID);
      });
      return undefined;
    },
  }),
  "registered-again": faultKind({
    says: "a Node is deleted and registered again under its name",
    draw: ({ draw, nodes }) => ({
      node: drawNode({ draw, nodes }),
      afterSeconds: draw.pick(1, 10, 60),
    }),
    begin: (stage, { node, afterSeconds }) => {
      const name = stage.machineName(node);
      const found = stage.get("nodes", name);
      const machine = stage.cluster.cloud.machine(name);
      if (found === undefined || machine?.state !== "Running") return undefined;
      stage.delete("nodes", name);
      stage.after(afterSeconds * 1000, () => {
        const now = stage.cluster.cloud.machine(name);
        if (now?.id !== machine.id || now.state !== "Running") return;
        if (stage.get("nodes", name) === undefined) stage.create("nodes", bare(found));
      });
      return undefined;
    },
  }),
  "shut-down": faultKind({
    says: "somebody shuts a machine down from inside; its group replaces it later",
    draw: ({ draw, nodes }) => ({
      node: drawNode({ draw, nodes }),
      goneAfterSeconds: draw.pick(40, 120, 900),
    }),
    begin: (stage, { node, goneAfterSeconds }) => {
      const { cloud, kubelet } = stage.cluster;
      const name = stage.machineName(node);
      const machine = cloud.machine(name);
      if (machine?.state !== "Running") return undefined;
      kubelet.shutDown(name, gkeShutdownGrace);
      stage.after(30_000, () => {
        if (cloud.machine(name)?.id === machine.id) cloud.halt(name);
      });
      stage.after(goneAfterSeconds * 1000, () => {
        if (cloud.machine(name)?.id === machine.id) cloud.take(name);
      });
      return undefined;
    },
  }),
};

function setBootId(stage: Stage, name: string, bootID: string): void {
  const nodes = stage.cluster.api.context.store.collection("nodes");
  const node = nodes.get("", name) as (ModelObject & { status: { nodeInfo?: object } }) | undefined;
  if (node === undefined) return;
  const nodeInfo = { ...node.status.nodeInfo, bootID };
  nodes.put({ ...node, status: { ...node.status, nodeInfo } });
}

/** A Node as its kubelet registers it: nothing of what others wrote on it. */
function bare({ metadata, spec, status, apiVersion, kind }: ModelObject): object {
  const { providerID } = spec as { providerID: string };
  const labels = Object.fromEntries(
    Object.entries(metadata.labels ?? {}).filter(([key]) => !key.includes("exclude")),
  );
  return {
    apiVersion,
    kind,
    metadata: { name: metadata.name, labels },
    spec: { providerID },
    status,
  };
}
