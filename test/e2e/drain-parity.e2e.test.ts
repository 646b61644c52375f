import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Pod } from "kubernetes-types/core/v1.js";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type ControlPlane, startControlPlane } from "../support/control-plane.ts";
import { createNodes } from "../support/kwok-fleet.ts";
import { runLastcall } from "../support/lastcall-process.ts";
import { waitUntil } from "../support/wait-until.ts";
import { type Fate, kinds, zoo } from "./drain-zoo.ts";
import { mustRun } from "./must-run.ts";

const node = "spot-1";
const podsPath = "/api/v1/namespaces/default/pods";
let plane: ControlPlane;
let folder: string;
let pods: readonly Pod[];

beforeAll(async () => {
  plane = await startControlPlane();
  folder = mkdtempSync(join(tmpdir(), "lastcall-parity-"));
  await mustRun(plane, ["apply", "-k", join(import.meta.dirname, "..", "..", "deploy", "crds")]);
  await createNodes(plane, [{ name: node }]);
  await mustRun(plane, ["apply", "-f", "-"], zoo(node));
  pods = await untilAllRun();
  await untilServed();
  await finish("done");
  await plane.request({ method: "DELETE", path: `${podsPath}/leaving` });
});

afterAll(async () => {
  await plane?.stop();
  rmSync(folder, { recursive: true, force: true });
});

describe("lastcall drain-plan and the real kubectl drain", () => {
  test("agree on every kind of pod, except for the differences in docs/drain.md", async () => {
    const [byKubectl, byPlan] = [await kubectlFates(), await planFates()];
    const found = kinds.map(({ app }) => ({
      app,
      kubectl: byKubectl(app),
      plan: byPlan(app)?.fate,
      reason: byPlan(app)?.reason,
    }));
    expect(found).toEqual(
      kinds.map(({ app, kubectl, plan, reason }) => ({ app, kubectl, plan, reason })),
    );
  });

  test("cover every pod of the node", async () => {
    const apps = new Set(pods.map(appOf));
    expect([...apps].toSorted()).toEqual(kinds.map(({ app }) => app).toSorted());
    expect((await plan()).count).toBe(kinds.length);
  });

  test("object to the same pods: kubectl refuses to start, and the plan warns", async () => {
    const refused = await plane.kubectl(["drain", node, "--dry-run=server"]);
    expect(refused.code).toBe(1);
    const refusals = refused.stderr.split("cannot delete ");
    const { warnings } = await plan();
    const losing = warnings
      .filter(({ reason }) => reason === "NoController" || reason === "EmptyDir")
      .map(({ name }) => name);
    for (const { app, refusal, plan: fate } of kinds) {
      const name = nameOf(app);
      const line = refusals.find((part) => part.includes(`default/${name}`));
      if (refusal === undefined) expect(line, app).toBeUndefined();
      else expect(line, app).toMatch(refusal);
      if (refusal !== undefined && fate === "Leaves") expect(losing).toContain(name);
    }
  });
});

/**
 * What kubectl does with all flags that let it continue; at a budget it retries until its timeout.
 */
async function kubectlFates(): Promise<(app: string) => Fate> {
  const flags = ["--ignore-daemonsets", "--force", "--delete-emptydir-data", "--timeout=8s"];
  const { stdout, stderr } = await plane.kubectl(["drain", node, "--dry-run=server", ...flags]);
  return (app) => {
    const name = nameOf(app);
    if (stderr.includes(`error when evicting pods/"${name}"`)) return "Held";
    return stdout.includes(`evicting pod default/${name} `) ? "Leaves" : "Stays";
  };
}

interface PlannedFate {
  readonly fate: Fate;
  readonly reason: string;
}

async function planFates(): Promise<(app: string) => PlannedFate | undefined> {
  const { lines } = await plan();
  return (app) => lines.find(({ name }) => name === nameOf(app));
}

interface Remark {
  readonly name: string;
  readonly reason: string;
}

async function plan() {
  const flags = ["--kubeconfig", plane.kubeconfig, "-o", "json"];
  const { stdout, stderr, code } = await runLastcall(["drain-plan", node, ...flags], { folder });
  expect({ stderr, code }).toMatchObject({ code: 0 });
  const report = JSON.parse(stdout) as {
    readonly pods: readonly (Remark & { readonly action: string })[];
    readonly skipped: readonly Remark[];
    readonly warnings: readonly Remark[];
  };
  const leaves = (action: string): Fate =>
    action === "Evict" || action === "Delete" ? "Leaves" : "Held";
  const lines = [
    ...report.pods.map((one) => ({ ...one, fate: leaves(one.action) })),
    ...report.skipped.map((one) => ({ ...one, fate: "Stays" as const })),
  ];
  return { lines, warnings: report.warnings, count: lines.length };
}

function appOf(pod: Pod): string {
  return pod.metadata?.labels?.app ?? "";
}

function nameOf(app: string): string {
  return pods.find((pod) => appOf(pod) === app)?.metadata?.name ?? `no pod of ${app}`;
}

function untilAllRun(): Promise<readonly Pod[]> {
  const what = "a pod of each kind runs on the node";
  return waitUntil(
    async () => {
      const { body } = await plane.request({ path: podsPath });
      const found: readonly Pod[] = body.items;
      const running = found.filter(
        ({ spec, status }) => spec?.nodeName === node && status?.phase === "Running",
      );
      return running.length === kinds.length && (await budgetsAreKnown()) && running;
    },
    { what, timeoutMs: 60_000, signal: plane.signal },
  );
}

/** Just after a CRD is created, a list may get 429: storage is initializing. */
function untilServed(): Promise<boolean> {
  const paths = ["departures", "departurepolicies"].map(
    (one) => `/apis/lastcall.dev/v1alpha1/${one}`,
  );
  return waitUntil(
    async () => {
      const answers = await Promise.all(paths.map((path) => plane.request({ path })));
      return answers.every(({ status }) => status === 200);
    },
    { what: "departures can be listed", timeoutMs: 60_000, signal: plane.signal },
  );
}

async function budgetsAreKnown(): Promise<boolean> {
  const path = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
  const { body } = await plane.request({ path });
  const budgets: readonly { status?: { currentHealthy?: number } }[] = body.items;
  return budgets.every(({ status }) => status?.currentHealthy === 1);
}

async function finish(name: string): Promise<void> {
  const patch = JSON.stringify({ status: { phase: "Succeeded" } });
  await mustRun(plane, ["patch", "pod", name, "--subresource=status", "--type=merge", "-p", patch]);
}
