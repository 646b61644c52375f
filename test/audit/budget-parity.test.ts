import { describe, expect, it } from "vitest";
import { type Rng, seededRng } from "../../src/core/chance/chance.ts";
import { ClusterScenario } from "../sim/cluster-controllers/cluster-scenario.ts";
import { remarks } from "./support/rule-remarks.ts";

/**
 * What the audit says of a budget, beside what the disruption controller makes of it: of the model
 * cluster, whose controller keeps the same sentences as Kubernetes' own (test/contract/kube-api/
 * disruption.ts).
 */

interface Drawn {
  readonly kind: string;
  readonly path: string;
  readonly body: { readonly metadata: object; readonly spec: object };
}

const seeds = Array.from({ length: 150 }, (_, place) => place + 1);

function oneOf<Item>(draw: Rng, some: readonly Item[]): Item {
  return some[Math.floor(draw() * some.length)] as Item;
}

const container = { name: "main", image: "app" };

function workload(draw: Rng, name: string): Drawn {
  const labels = { app: "web", set: name };
  const kind = oneOf(draw, ["Deployment", "Deployment", "StatefulSet", "DaemonSet", "Job", "Pod"]);
  if (kind === "Pod") {
    const body = { metadata: { name, labels }, spec: { containers: [container] } };
    return { kind, path: "/api/v1/namespaces/default/pods", body };
  }
  const restartPolicy = kind === "Job" ? "Never" : "Always";
  const template = { metadata: { labels }, spec: { restartPolicy, containers: [container] } };
  const count = Math.floor(draw() * 4);
  const parallelism = count + 1;
  const counted = kind === "Job" ? { parallelism, completions: parallelism } : { replicas: count };
  const spec = {
    ...(kind === "DaemonSet" ? {} : counted),
    ...(kind === "Job" ? {} : { selector: { matchLabels: labels } }),
    template,
  };
  const group = kind === "Job" ? "batch" : "apps";
  const path = `/apis/${group}/v1/namespaces/default/${kind.toLowerCase()}s`;
  return { kind, path, body: { metadata: { name }, spec } };
}

const selectors = [
  { matchLabels: { app: "web" } },
  {},
  { matchExpressions: [{ key: "set", operator: "Exists" }] },
  { matchExpressions: [{ key: "set", operator: "In", values: ["w0", "w1", "w2"] }] },
  { matchLabels: { app: "web" }, matchExpressions: [{ key: "gone", operator: "DoesNotExist" }] },
];

function budgetSpec(draw: Rng): object {
  const field = oneOf(draw, ["minAvailable", "maxUnavailable"]);
  const amount = oneOf(draw, [0, 1, 2, 3, 5, "0%", "1%", "34%", "50%", "67%", "100%"]);
  return { [field]: amount, selector: oneOf(draw, selectors) };
}

function manifestsOf(all: readonly Drawn[], budget: object): string {
  const pdb = { apiVersion: "policy/v1", kind: "PodDisruptionBudget", ...budget };
  const versions: Readonly<Record<string, string>> = { Pod: "v1", Job: "batch/v1" };
  const others = all.map(({ kind, body }) => ({
    ...{ apiVersion: versions[kind] ?? "apps/v1", kind },
    ...body,
  }));
  return [pdb, ...others].map((one) => JSON.stringify(one)).join("\n---\n");
}

describe("the audit of a budget", () => {
  it.each(seeds)("agrees with the disruption controller, seed %i", async (seed) => {
    const draw = seededRng(seed);
    const names = Array.from({ length: 1 + Math.floor(draw() * 3) }, (_, place) => `w${place}`);
    const all = names.map((name) => workload(draw, name));
    const budget = { metadata: { name: "web" }, spec: budgetSpec(draw) };
    const cluster = new ClusterScenario();
    for (const node of ["n1", "n2"]) cluster.node(node);
    for (const { path, body } of all) cluster.post(path, body);
    cluster.post("/apis/policy/v1/namespaces/default/poddisruptionbudgets", budget);
    await cluster.wait(60);

    const allowed = Number(cluster.budgetStatus("web").disruptionsAllowed);
    const [said] = await remarks("pdb-blocks-forever", manifestsOf(all, budget));
    const kinds = new Set(all.map(({ kind }) => kind));
    const pods = cluster.pods().length;
    const about = JSON.stringify({ budget, all: all.map(({ kind, body }) => [kind, body.spec]) });
    const severity = said?.split(" ")[0];
    if (pods === 0) expect(said, about).toBeUndefined();
    // A Job that ends leaves others without it, and a DaemonSet has a pod on each node.
    else if (severity === "warning") {
      expect(kinds.has("Job") || [...kinds].join() === "DaemonSet", about).toBe(true);
    } else if (severity === "error") expect(allowed, about).toBe(0);
    else if (!kinds.has("DaemonSet")) expect(allowed, about).toBeGreaterThan(0);
  });
});
