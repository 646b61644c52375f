import { drawNode, type FaultKind, faultKind } from "../fault.ts";
import type { Stage } from "../stage.ts";
import { startAt } from "../stage.ts";

const policy = "spot";

/** By which a policy without a selector finds its nodes on GKE. */
const spotLabel = "cloud.google.com/gke-preemptible";
const provisioningLabel = "cloud.google.com/gke-provisioning";

/** What people and other tools do, and undo later. */
export const peopleFaults: Readonly<Record<string, FaultKind>> = {
  "policy-paused": editOfPolicy("somebody pauses the policy", { paused: true }, { paused: null }),
  "policy-frozen": faultKind({
    says: "somebody freezes the policy, and forgets when that ends",
    draw: () => ({}),
    begin: (stage) => {
      const freezeUntil = new Date(startAt + 40 * 3_600_000).toISOString();
      stage.patch("policies", policy, { spec: { gates: { freezeUntil } } });
      return () => stage.patch("policies", policy, { spec: { gates: null } });
    },
  }),
  "policy-narrowed": faultKind({
    says: "somebody narrows the policy's selector to other nodes",
    draw: () => ({}),
    begin: (stage) => {
      const matchExpressions = [{ key: "pool", operator: "In", values: ["elsewhere"] }];
      const nodeSelector = { nodeSelectorTerms: [{ matchExpressions }] };
      stage.patch("policies", policy, { spec: { nodeSelector } });
      return () => stage.patch("policies", policy, { spec: { nodeSelector: null } });
    },
  }),
  "policy-deleted": faultKind({
    says: "somebody deletes the policy, and creates it again",
    draw: () => ({}),
    begin: (stage) => {
      const found = stage.get("policies", policy);
      if (found === undefined) return undefined;
      stage.delete("policies", policy);
      const { apiVersion, kind, spec } = found;
      return () => stage.create("policies", { apiVersion, kind, metadata: { name: policy }, spec });
    },
  }),
  "lifetime-shortened": faultKind({
    says: "somebody shortens the lifetime: every node is overdue",
    draw: ({ draw }) => ({ max: draw.pick("40m", "1h") }),
    begin: (stage, { max }) => {
      stage.patch("policies", policy, { spec: { lifetime: { max } } });
      const { lifetime } = stage.world.policy;
      return () => stage.patch("policies", policy, { spec: { lifetime } });
    },
  }),

  "node-held": editOfNode("somebody holds a node", {
    edit: { metadata: { annotations: { "lastcall.dev/hold": "true" } } },
    undo: { metadata: { annotations: { "lastcall.dev/hold": null } } },
  }),
  "node-cordoned": editOfNode("somebody cordons a node", {
    edit: { spec: { unschedulable: true } },
    undo: { spec: { unschedulable: null } },
  }),
  "node-uncordoned": editOfNode("somebody uncordons a node", {
    edit: { spec: { unschedulable: null } },
  }),
  "node-relabelled": editOfNode("somebody moves a node out of the policy's selection", {
    edit: { metadata: { labels: { [spotLabel]: null, [provisioningLabel]: null } } },
    undo: { metadata: { labels: { [spotLabel]: "true", [provisioningLabel]: "preemptible" } } },
  }),
  "node-deleted": faultKind({
    says: "somebody deletes a Node whose machine runs",
    draw: ({ draw, nodes }) => ({ node: drawNode({ draw, nodes }) }),
    begin: (stage, { node }) => {
      stage.delete("nodes", stage.machineName(node));
      return undefined;
    },
  }),

  "departure-held": faultKind({
    says: "somebody holds every live Departure of a node",
    draw: ({ draw, nodes }) => ({ node: drawNode({ draw, nodes }) }),
    begin: (stage, { node }) => {
      const names = departuresOf(stage, stage.machineName(node));
      for (const name of names) stage.patch("departures", name, { spec: { hold: true } });
      return () => {
        for (const name of names) stage.patch("departures", name, { spec: { hold: false } });
      };
    },
  }),
  "departure-deleted": faultKind({
    says: "somebody deletes the Departures that are under way",
    draw: () => ({}),
    begin: (stage) => {
      for (const name of departuresOf(stage)) stage.delete("departures", name);
      return undefined;
    },
  }),
  "departure-requested": faultKind({
    says: "somebody asks for several nodes to leave now",
    draw: ({ draw, nodes }) => ({
      from: drawNode({ draw, nodes }),
      count: draw.between(1, nodes),
    }),
    begin: (stage, { from, count }) => {
      for (let index = 0; index < count; index += 1) {
        requestDeparture(stage, stage.machineName(index === 0 ? from : Math.max(0, from) + index));
      }
      return undefined;
    },
  }),

  "budget-closed": faultKind({
    says: "somebody sets every PodDisruptionBudget to 0",
    draw: () => ({}),
    begin: (stage) => {
      const before = stage.list("budgets").map(({ metadata: { name }, spec }) => ({ name, spec }));
      for (const { name } of before) stage.patch("budgets", name, { spec: { maxUnavailable: 0 } });
      return () => {
        for (const { name, spec } of before) {
          const { maxUnavailable } = spec as { maxUnavailable: number };
          stage.patch("budgets", name, { spec: { maxUnavailable } });
        }
      };
    },
  }),
  "pods-stuck": faultKind({
    says: "the kubelet of a node does not end its pods",
    draw: ({ draw, nodes }) => ({ node: drawNode({ draw, nodes }) }),
    begin: (stage, { node }) => {
      const name = stage.machineName(node);
      const finalizers = ["example.com/stuck"];
      const stuck = podsOn(stage, name);
      for (const pod of stuck) setFinalizers(stage, pod, finalizers);
      return () => {
        for (const pod of stuck) setFinalizers(stage, pod, []);
      };
    },
  }),
};

function editOfPolicy(says: string, edit: object, undo: object): FaultKind {
  return faultKind({
    says,
    draw: () => ({}),
    begin: (stage) => {
      stage.patch("policies", policy, { spec: edit });
      return () => stage.patch("policies", policy, { spec: undo });
    },
  });
}

function editOfNode(says: string, { edit, undo }: { edit: object; undo?: object }): FaultKind {
  return faultKind({
    says,
    draw: ({ draw, nodes }) => ({ node: drawNode({ draw, nodes }) }),
    begin: (stage, { node }) => {
      const name = stage.machineName(node);
      const uid = stage.get("nodes", name)?.metadata.uid;
      if (uid === undefined) return undefined;
      stage.patch("nodes", name, edit);
      if (undo === undefined) return undefined;
      return () => {
        if (stage.get("nodes", name)?.metadata.uid === uid) stage.patch("nodes", name, undo);
      };
    },
  });
}

interface DepartureFields {
  readonly spec: { readonly node: { readonly name: string } };
  readonly status?: { readonly phase?: string };
}

/** The live Departures of a node, or all that are under way. */
function departuresOf(stage: Stage, node?: string): readonly string[] {
  const waits = ["Scheduled", "Held", undefined];
  return stage.list("departures").flatMap((object) => {
    const { spec, status } = object as unknown as DepartureFields;
    if (status?.phase === "Ended") return [];
    const isMeant = node === undefined ? !waits.includes(status?.phase) : spec.node.name === node;
    return isMeant ? [object.metadata.name] : [];
  });
}

/** As `lastcall depart NODE` does. */
function requestDeparture(stage: Stage, node: string): void {
  const found = stage.get("nodes", node);
  if (found === undefined) return;
  const { uid } = found.metadata;
  const { providerID } = found.spec as { providerID: string };
  stage.create("departures", {
    apiVersion: "lastcall.dev/v1alpha1",
    kind: "Departure",
    metadata: { name: `${node}-${uid.slice(0, 8)}-${stage.clock.now() - startAt}` },
    spec: { node: { name: node, uid, providerID }, cause: "Manual", policy },
  });
}

function podsOn(stage: Stage, node: string): readonly { namespace: string; name: string }[] {
  return [...stage.cluster.api.context.store.collection("pods").onNode(node)].map(
    ({ metadata: { namespace = "", name } }) => ({ namespace, name }),
  );
}

function setFinalizers(
  stage: Stage,
  { namespace, name }: { namespace: string; name: string },
  finalizers: readonly string[],
): void {
  const path = `/api/v1/namespaces/${namespace}/pods/${name}`;
  const body = { metadata: { finalizers } };
  const patchType = "application/merge-patch+json";
  stage.cluster.api.handle({ method: "PATCH", path, patchType, body });
}
