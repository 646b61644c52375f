/**
 * The commands of docs/getting-started.md as they stand there, on a real control plane with a
 * Compute Engine of our own: from a cluster with Spot nodes to its first planned departure.
 */
import { spawn } from "node:child_process";
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, expect, test } from "vitest";
import { hours, instant, minus } from "../../src/core/time/time.ts";
import { buildControlPlane, buildHelm } from "../controlplane/build.ts";
import { type ControlPlane, startControlPlane } from "../support/control-plane.ts";
import { makeFakeGcloud } from "../support/fake-gcloud.ts";
import { freePort } from "../support/free-port.ts";
import { createNodes } from "../support/kwok-fleet.ts";
import { type LastcallProcess, startLastcall } from "../support/lastcall-process.ts";
import { Cloud, project } from "./cloud.ts";
import { mustRun } from "./must-run.ts";
import { untilAlive } from "./until-alive.ts";
import { spreadWorkload } from "./workload.ts";

const root = join(import.meta.dirname, "../..");
const page = readFileSync(join(root, "docs/getting-started.md"), "utf8");
const zone = "europe-west1-b";
const nodes = ["spot-1", "spot-2", "spot-3"];

const gcloud = makeFakeGcloud();
const processes = new Set<LastcallProcess>();
let plane: ControlPlane;
let cloud: Cloud;
let folder: string;
/** Each command, and what had to be waited for, with the seconds that it took. */
const ran: { readonly command: string; readonly seconds: number }[] = [];

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "lastcall-started-"));
  plane = await startControlPlane();
  cloud = await Cloud.start(plane);
  await createNodes(plane, [
    ...nodes.map((name) => ({ name, zone })),
    ...["standard-1", "standard-2"].map((name) => ({ name, provisioning: "standard" as const })),
  ]);
  cloud.adopt(nodes.map((name) => ({ name, zone })));
  // One is past the policy's limit already, so that nobody waits for the night.
  cloud.startAt("spot-1", minus(instant(Date.now()), hours(23.9)));
  await mustRun(plane, ["apply", "-f", "-"], spreadWorkload(6, "50%"));
  gcloud.put("workload-pool");
  writeFileSync(join(folder, "policy.yaml"), policyOf(page));
  tool("kubectl", buildControlPlane().controlplane, "kubectl");
  tool("helm", buildHelm());
  tool("lastcall", process.execPath, join(root, "src/cli/main.ts"));
});

afterAll(async () => {
  await Promise.all([...processes].map((one) => one.kill()));
  await cloud?.stop();
  await plane?.stop();
  gcloud.remove();
  rmSync(folder, { recursive: true, force: true });
});

/** A command of this name, as a reader has it on the PATH. */
function tool(name: string, ...command: readonly string[]): void {
  const file = join(folder, name);
  writeFileSync(file, `#!/bin/bash\nexec ${command.map((word) => `'${word}'`).join(" ")} "$@"\n`);
  chmodSync(file, 0o755);
}

/** The page's policy, whose window is open all day: a test runs at any hour. */
function policyOf(markdown: string): string {
  const policy = /```yaml\n([\s\S]*?)```/.exec(markdown)?.[1] ?? "";
  const nights = 'start: "22:00", end: "06:00"';
  expect(policy).toContain(nights);
  return policy.replace(nights, 'start: "00:00", end: "24:00"');
}

/** The commands of the page's four steps, in their order, without comments. */
function commandsOf(markdown: string): readonly string[] {
  const [steps = ""] = markdown.split("\n## Next");
  const setup = /`(lastcall setup gcp [^`]*)`/.exec(steps)?.[1] ?? "";
  const parts = steps.split(/^## /m).slice(1);
  return parts.flatMap((part) => [
    ...(part.includes(setup) ? [setup] : []),
    ...[...part.matchAll(/```bash\n([\s\S]*?)```/g)].flatMap(([, block = ""]) =>
      block
        .replaceAll("\\\n", " ")
        .split("\n")
        .map((line) => line.replace(/\s+#.*$/, "").trim())
        .filter((line) => line !== ""),
    ),
  ]);
}

/** What a reader fills in. */
function filledIn(command: string): string {
  return command
    .replace(/\bNODE\b/, "spot-2")
    .replace("deploy/chart", join(root, "deploy/chart"))
    .replace(
      "--project PROJECT --cluster NAME --location REGION",
      `--project ${project.id} --apply`,
    )
    .replace(" --watch", "");
}

async function run(command: string): Promise<{ readonly code: number; readonly said: string }> {
  const startMs = performance.now();
  const child = spawn("bash", ["-c", command], {
    cwd: folder,
    env: {
      PATH: [folder, gcloud.path, process.env.PATH].join(delimiter),
      HOME: folder,
      KUBECONFIG: plane.kubeconfig,
      LASTCALL_GCP_ENDPOINT: cloud.endpoint,
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const closed = Promise.withResolvers<number>();
  child.once("close", (code) => closed.resolve(code ?? 1));
  const said = (await Promise.all([text(child.stdout), text(child.stderr)])).join("\n");
  const code = await closed.promise;
  ran.push({ command, seconds: (performance.now() - startMs) / 1000 });
  return { code, said };
}

async function waiting(what: string, wait: () => Promise<unknown>): Promise<void> {
  const startMs = performance.now();
  await wait();
  ran.push({ command: `(${what})`, seconds: (performance.now() - startMs) / 1000 });
}

function untilDrained(): Promise<boolean> {
  return until("a node is drained by its plan", async () => {
    const { body } = await plane.request({ path: "/apis/lastcall.dev/v1alpha1/departures" });
    return body.items.some(
      ({ spec, status }: { spec: { cause: string }; status?: { phase?: string } }) =>
        spec.cause === "Planned" && status?.phase === "Draining",
    );
  });
}

/** What the pods of the installed Deployment do, which kwok only plays. */
async function startController(): Promise<void> {
  const token = await plane.tokenFor("lastcall", "lastcall");
  const kubeconfig = plane.kubeconfigFor("lastcall", token);
  const address = async () => `127.0.0.1:${await freePort()}`;
  const ports = ["--health-address", await address(), "--metrics-address", await address()];
  const flags = ["--kubeconfig", kubeconfig, "-n", "lastcall", "--gcp-endpoint", cloud.endpoint];
  processes.add(startLastcall(["run", ...flags, ...ports], { folder }));
  await until("it leads", async () => {
    const path = "/apis/coordination.k8s.io/v1/namespaces/lastcall/leases/lastcall";
    return (await plane.request({ path })).body.spec?.holderIdentity?.length > 0;
  });
}

function until<T>(what: string, holds: () => Promise<T | false | undefined>): Promise<T> {
  return untilAlive(holds, { what, timeoutMs: 120_000 }, { plane, processes });
}

test("getting started leads to a planned departure in under five minutes of commands", async () => {
  for (const command of commandsOf(page).map(filledIn)) {
    const { code, said } = await run(command);
    expect({ command, code, said }).toEqual({ command, code: 0, said });
    if (command.startsWith("helm ")) await waiting("until a controller leads", startController);
  }
  const count = ran.filter(({ command }) => !command.startsWith("(")).length;
  await waiting("until a node is drained by its plan", untilDrained);
  console.log(ran.map(({ command, seconds }) => `${seconds.toFixed(1)} s  ${command}`).join("\n"));
  const spent = ran.reduce((sum, one) => sum + one.seconds, 0);
  expect(spent).toBeLessThan(300);
  const stated = /(\w+) commands with Helm/.exec(page)?.[1];
  expect(stated).toBe(countWords[count]);
});

const countWords: Readonly<Record<number, string>> = { 11: "eleven", 12: "twelve", 13: "thirteen" };
