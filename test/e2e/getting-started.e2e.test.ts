/**
 * Runs the commands of docs/getting-started.md on a real control plane: from a cluster with Spot
 * nodes to its first planned departure, on GKE, EKS and AKS. Compute Engine, EC2, Auto Scaling and
 * Resource Manager are our own servers, SQS is moto's, and the clouds' command lines are fakes.
 */
import { spawn } from "node:child_process";
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { hours, instant, minus } from "../../src/core/time/time.ts";
import { realClock } from "../../src/runtime/real-clock.ts";
import { buildControlPlane, buildHelm } from "../controlplane/build.ts";
import { ArmServer } from "../support/arm-server.ts";
import { providerIdOf as azureIdOf } from "../support/azure-world.ts";
import { type ControlPlane, startControlPlane } from "../support/control-plane.ts";
import { Ec2Fleet } from "../support/ec2-fleet.ts";
import { makeFakeAws } from "../support/fake-aws.ts";
import { makeFakeAz } from "../support/fake-az.ts";
import { makeFakeGcloud } from "../support/fake-gcloud.ts";
import type { FakeTools } from "../support/fake-tools.ts";
import { freePort } from "../support/free-port.ts";
import { createNodes, type FleetNode } from "../support/kwok-fleet.ts";
import { type LastcallProcess, startAsPod } from "../support/lastcall-process.ts";
import { Moto } from "../support/moto.ts";
import { Cloud, project } from "./cloud.ts";
import { mustRun } from "./must-run.ts";
import { untilAlive } from "./until-alive.ts";
import { spreadWorkload } from "./workload.ts";

const root = join(import.meta.dirname, "../..");
const page = readFileSync(join(root, "docs/getting-started.md"), "utf8");
const zone = "europe-west1-b";
const nodes = ["spot-1", "spot-2", "spot-3"];

const processes = new Set<LastcallProcess>();
let plane: ControlPlane;
let platform: Platform;
let folder: string;
/** Each command and each wait, with the seconds that it took. */
let ran: { readonly command: string; readonly seconds: number }[];

/** The launch time of a machine that is already due, so that the test does not wait for hours. */
const oldSince = () => minus(instant(Date.now()), hours(23.9));

/** A cloud, as a reader of the page has it. */
interface Platform {
  readonly tools: FakeTools;
  readonly nodes: readonly FleetNode[];
  /** The flags of `lastcall setup` that the reader fills in. */
  readonly account: string;
  /** The cloud's endpoints, for each command and for the controller. */
  readonly env: Readonly<Record<string, string>>;
  /** What the page tells a reader on this cloud to add to `helm`. */
  readonly helmFlags: readonly string[];
  readonly runFlags: readonly string[];
  /** Whether the page puts step 3 before step 2. */
  readonly installsFirst: boolean;
  /** Called when the nodes exist. */
  readonly open?: () => void;
  stop(): Promise<unknown>;
}

const platforms: Readonly<Record<string, () => Promise<Platform>>> = {
  gke: async () => {
    const tools = makeFakeGcloud();
    tools.put("workload-pool");
    const cloud = await Cloud.start(plane);
    return {
      tools,
      nodes: nodes.map((name) => ({ name, zone })),
      account: `--project ${project.id} --apply`,
      env: { LASTCALL_GCP_ENDPOINT: cloud.endpoint },
      ...{ helmFlags: [], runFlags: [], installsFirst: false },
      open: () => {
        cloud.adopt(nodes.map((name) => ({ name, zone })));
        cloud.startAt("spot-1", oldSince());
      },
      stop: () => cloud.stop(),
    };
  },
  eks: async () => {
    const tools = makeFakeAws();
    tools.put("cluster", "https://oidc.eks.eu-west-1.amazonaws.com/id/EXAMPLE");
    tools.put("addon");
    const moto = await Moto.start();
    await moto.makeQueue("lastcall-main");
    const fleet = new Ec2Fleet(realClock);
    await fleet.start();
    const group = fleet.addGroup("spot");
    const instances = nodes.map(() => fleet.addInstance(group));
    for (const [place, one] of instances.entries()) if (place === 0) one.launchedAt = oldSince();
    const queue = `controller.options.sqs-queue-url=${moto.queueUrl}`;
    return {
      tools,
      nodes: instances.map(({ id }, place) => ({
        ...{ name: nodes[place] ?? "", providerID: `aws:///eu-west-1a/${id}` },
        ...{ platform: "other", zone: "eu-west-1a" },
        labels: { "eks.amazonaws.com/capacityType": "SPOT" },
      })),
      account:
        "--account 123456789012 --region eu-west-1 --cluster main --queue lastcall-main --apply",
      env: { ...moto.environment, AWS_ENDPOINT_URL: fleet.url, AWS_ENDPOINT_URL_SQS: moto.url },
      ...{ helmFlags: ["--set", queue], runFlags: ["--sqs-queue-url", moto.queueUrl] },
      installsFirst: false,
      stop: () => Promise.all([fleet.close(), moto.stop()]),
    };
  },
  aks: async () => {
    const tools = makeFakeAz();
    for (const what of ["cluster", "webhook"])
      tools.put(what, "https://westeurope.oic.prod-aks.azure.com/t/i/");
    const arm = await new ArmServer(realClock).start();
    const machines = nodes.map((name) => arm.addMachine(undefined, name));
    for (const [place, one] of machines.entries()) if (place === 0) one.createdAt = oldSince();
    const label = String.raw`podLabels.azure\.workload\.identity/use=true`;
    return {
      tools,
      nodes: machines.map(({ name, instance }) => ({
        ...{ platform: "other", name, providerID: azureIdOf(instance), zone: "westeurope-1" },
        labels: { "kubernetes.azure.com/scalesetpriority": "spot" },
      })),
      account:
        "--subscription 11111111-2222-3333-4444-555555555555 --resource-group shop --cluster main --apply",
      env: { LASTCALL_AZURE_ENDPOINT: arm.url },
      ...{ helmFlags: ["--set-string", `'${label}'`], runFlags: [], installsFirst: true },
      stop: () => arm.close(),
    };
  },
};

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "lastcall-started-"));
  writeFileSync(join(folder, "policy.yaml"), policyOf(page));
  tool("kubectl", buildControlPlane().controlplane, "kubectl");
  tool("helm", buildHelm());
  tool("lastcall", process.execPath, join(root, "src/cli/main.ts"));
});

afterEach(async () => {
  await Promise.all([...processes].map((one) => one.kill()));
  processes.clear();
  await platform?.stop();
  platform?.tools.remove();
  await plane?.stop();
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function start(name: string): Promise<void> {
  ran = [];
  plane = await startControlPlane();
  platform = (await platforms[name]?.()) as Platform;
  const standard = ["standard-1", "standard-2"].map((node) => ({
    ...{ name: node, provisioning: "standard" as const },
    ...(name !== "gke" && { platform: "other" as const }),
  }));
  await createNodes(plane, [...platform.nodes, ...standard]);
  platform.open?.();
  await mustRun(plane, ["apply", "-f", "-"], spreadWorkload(6, "50%"));
}

/** Puts a command of this name on the PATH, where a reader has it. */
function tool(name: string, ...command: readonly string[]): void {
  const file = join(folder, name);
  writeFileSync(file, `#!/bin/bash\nexec ${command.map((word) => `'${word}'`).join(" ")} "$@"\n`);
  chmodSync(file, 0o755);
}

/** The page's policy with a window that is open all day, because the test runs at any hour. */
function policyOf(markdown: string): string {
  const policy = /```yaml\n([\s\S]*?)```/.exec(markdown)?.[1] ?? "";
  const nights = 'start: "22:00", end: "06:00"';
  expect(policy).toContain(nights);
  return policy.replace(nights, 'start: "00:00", end: "24:00"');
}

/** The commands of the page's four steps, in the order for a reader on this cloud. */
function commandsFor(name: string): readonly string[] {
  const [steps = ""] = page.split("\n## Next");
  const cloud = { gke: "gcp", eks: "aws", aks: "azure" }[name];
  const setup = new RegExp(`\`(lastcall setup ${cloud} [^\`]*)\``).exec(steps)?.[1] ?? "";
  const [look = [], , install = [], release = []] = steps
    .split(/^## /m)
    .slice(1)
    .map((part) => [...part.matchAll(/```bash\n([\s\S]*?)```/g)].flatMap(linesIn));
  const middle = platform.installsFirst ? [...install, setup] : [setup, ...install];
  return [...look, ...middle, ...release].map((command) => filledIn(command, name));
}

function linesIn([, block = ""]: RegExpExecArray): readonly string[] {
  return block
    .replaceAll("\\\n", " ")
    .split("\n")
    .map((line) => line.replace(/\s+#.*$/, "").trim())
    .filter((line) => line !== "");
}

/** The command with the values that a reader fills in. */
function filledIn(command: string, name: string): string {
  const filled = command
    .replace(/\bNODE\b/, "spot-2")
    .replace("--platform gke", `--platform ${name}`)
    .replace("deploy/chart", join(root, "deploy/chart"))
    .replace(/^(lastcall setup (?:gcp|aws|azure)) .*/, `$1 ${platform.account}`)
    .replace(" --watch", "");
  return filled.startsWith("helm ") ? [filled, ...platform.helmFlags].join(" ") : filled;
}

async function run(command: string): Promise<{ readonly code: number; readonly said: string }> {
  const startMs = performance.now();
  const child = spawn("bash", ["-c", command], {
    cwd: folder,
    env: {
      PATH: [folder, platform.tools.path, process.env.PATH].join(delimiter),
      HOME: folder,
      KUBECONFIG: plane.kubeconfig,
      ...platform.env,
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

/** Runs what the pods of the installed Deployment would; kwok only simulates them. */
async function startController(): Promise<void> {
  const token = await plane.tokenFor("lastcall", "lastcall");
  const kubeconfig = plane.kubeconfigFor("lastcall", token);
  const address = async () => `127.0.0.1:${await freePort()}`;
  const ports = ["--health-address", await address(), "--metrics-address", await address()];
  const flags = ["--kubeconfig", kubeconfig, "-n", "lastcall", ...platform.runFlags];
  processes.add(startAsPod(["run", ...flags, ...ports], { folder, env: platform.env }));
  await until("it leads", async () => {
    const path = "/apis/coordination.k8s.io/v1/namespaces/lastcall/leases/lastcall";
    return (await plane.request({ path })).body.spec?.holderIdentity?.length > 0;
  });
}

function until<T>(what: string, holds: () => Promise<T | false | undefined>): Promise<T> {
  return untilAlive(holds, { what, timeoutMs: 120_000 }, { plane, processes });
}

test.each(["gke", "eks", "aks"])(
  "on %s the page leads to a planned departure in under five minutes of commands",
  async (name) => {
    await start(name);
    for (const command of commandsFor(name)) {
      const { code, said } = await run(command);
      expect({ command, code, said }).toEqual({ command, code: 0, said });
      if (command.startsWith("helm ")) await waiting("until a controller leads", startController);
    }
    const count = ran.filter(({ command }) => !command.startsWith("(")).length;
    await waiting("until a node is drained by its plan", untilDrained);
    const lines = ran.map(({ command, seconds }) => `${seconds.toFixed(1)} s  ${command}`);
    const spent = ran.reduce((sum, one) => sum + one.seconds, 0);
    console.log([`${name}: ${spent.toFixed(1)} s`, ...lines].join("\n"));
    expect(spent).toBeLessThan(300);
    const stated = /(\d+) commands with Helm/.exec(page)?.[1];
    expect(Number(stated)).toBe(count);
  },
  600_000,
);
