/** Twenty notices at once on one control plane, judged by an onlooker and the audit log. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { formatInstant, instant, minutes, plus } from "../../src/core/time/time.ts";
import { type AuditLog, createAuditLog } from "../support/audit-log.ts";
import { type ControlPlane, startControlPlane } from "../support/control-plane.ts";
import { freePort } from "../support/free-port.ts";
import { createNodes } from "../support/kwok-fleet.ts";
import { type LastcallProcess, startAsPod } from "../support/lastcall-process.ts";
import { controllerUser } from "./fleet-world.ts";
import { isReady } from "./history.ts";
import { mustRun } from "./must-run.ts";
import { judgeNotices } from "./notice-judge.ts";
import { Onlooker } from "./onlooker.ts";
import { untilAlive } from "./until-alive.ts";
import { spreadWorkload } from "./workload.ts";

const deploy = join(import.meta.dirname, "..", "..", "deploy");
const departuresPath = "/apis/lastcall.dev/v1alpha1/departures";
const noticed = Array.from({ length: 20 }, (_, place) => `spot-${place + 1}`);
const spared = ["standard-1", "standard-2"];
const podCount = 60;

let plane: ControlPlane;
let audit: AuditLog;
let onlooker: Onlooker;
let controller: LastcallProcess | undefined;
let folder: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "lastcall-burst-"));
  audit = createAuditLog();
  plane = await startControlPlane({ apiServerFlags: audit.flags });
  await mustRun(plane, ["apply", "-k", join(deploy, "crds")]);
  for (const file of ["namespace", "rbac", "admission"]) {
    await mustRun(plane, ["apply", "-f", join(deploy, "base", `${file}.yaml`)]);
  }
  // Just after a CRD is created, a list may get 429: storage is initializing.
  await until("departures can be listed", async () => {
    return (await plane.request({ path: departuresPath })).status === 200;
  });
  await createNodes(plane, [
    ...noticed.map((name) => ({ name, provisioning: "spot" as const })),
    ...spared.map((name) => ({ name, provisioning: "standard" as const })),
  ]);
  await mustRun(plane, ["apply", "-f", "-"], spreadWorkload(podCount, "50%"));
  await until("every pod is ready", async () => (await readyPods()).length === podCount);
  onlooker = new Onlooker(plane);
  await onlooker.start();
  await startController();
});

afterAll(async () => {
  await controller?.kill();
  await onlooker?.stop();
  await plane?.stop();
  audit?.remove();
  rmSync(folder, { recursive: true, force: true });
});

test("twenty nodes under notice are drained before their deadline, by evictions", async () => {
  const deadlineAt = formatInstant(plus(instant(Date.now()), minutes(2)));
  await Promise.all(noticed.map((name) => notice(name, deadlineAt)));
  await until("every pod is ready on a node without a notice", async () => {
    const pods = await readyPods();
    return pods.length === podCount && pods.every(({ node }) => spared.includes(node));
  });
  expect(Date.now()).toBeLessThan(Date.parse(deadlineAt));
  const history = { changes: onlooker.changes(), audit: audit.read() };
  const none = { releases: [], machineEnds: [] };
  const charge = { noticed, spared, user: controllerUser };
  expect(judgeNotices({ ...history, ...none }, charge)).toEqual([]);
});

async function startController(): Promise<void> {
  const [health, metrics] = [await freePort(), await freePort()];
  const kubeconfig = plane.kubeconfigFor("lastcall", await plane.tokenFor("lastcall", "lastcall"));
  const addresses = ["--health-address", `127.0.0.1:${health}`];
  addresses.push("--metrics-address", `127.0.0.1:${metrics}`);
  controller = startAsPod(["run", "--kubeconfig", kubeconfig, ...addresses], { folder });
  await until("the controller is ready", async () => {
    return (await fetch(`http://127.0.0.1:${health}/readyz`).catch(() => undefined))?.ok;
  });
}

async function notice(name: string, deadlineAt: string): Promise<void> {
  const { body } = await plane.request({ path: `/api/v1/nodes/${name}` });
  const departure = {
    apiVersion: "lastcall.dev/v1alpha1",
    kind: "Departure",
    metadata: { name },
    spec: {
      node: { name, uid: body.metadata.uid, providerID: body.spec.providerID },
      cause: "SpotInterruption",
      noticedAt: formatInstant(instant(Date.now())),
      deadlineAt,
      source: "test",
    },
  };
  const { status } = await plane.request({
    method: "POST",
    path: departuresPath,
    body: departure,
  });
  expect(status).toBe(201);
}

async function readyPods(): Promise<readonly { readonly node: string }[]> {
  const { body } = await plane.request({ path: "/api/v1/namespaces/default/pods" });
  return body.items
    .filter(isReady)
    .map(({ spec }: { spec: { nodeName?: string } }) => ({ node: spec.nodeName ?? "" }));
}

function until<T>(what: string, condition: () => Promise<T | false | undefined>): Promise<T> {
  const processes = controller === undefined ? [] : [controller];
  return untilAlive(condition, { what, timeoutMs: 110_000 }, { plane, processes });
}
