/**
 * What an idle agent costs: resident memory and processor time on Node and on Bun, while it polls
 * EC2's metadata service every second or holds a request at Compute Engine's, compared with an
 * empty process of the same runtime. All processes run in parallel for `--minutes`, ten by default.
 * Bun is found on the PATH or in E2E_AGENT_RUNTIME; without Bun only Node is measured.
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { instant } from "../src/core/time/time.ts";
import { AwsMetadataServer } from "../test/support/aws-metadata-server.ts";
import { GcpMetadataServer } from "../test/support/gcp-metadata-server.ts";
import { waitUntil } from "../test/support/wait-until.ts";
import { cpuSecondsOf, memoryMiB } from "./process-figures.ts";
import { type Figure, rounded, writeResult } from "./result-file.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const fixtures = join(root, "test/kube/fixtures");
const bundle = join(root, "dist/agent.js");
const { values } = parseArgs({ options: { minutes: { type: "string", default: "10" } } });
const minutes = Number(values.minutes);
/** Startup is not part of idling. */
const settleMs = 20_000;

interface Runtime {
  readonly name: string;
  readonly agent: readonly string[];
  readonly empty: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Goals apply only to what is in the image. */
  readonly ships: boolean;
}

interface Running {
  readonly name: string;
  readonly runtime: Runtime;
  readonly child: ChildProcess;
  readonly log: string[];
  startCpuSeconds: number;
}

const folder = mkdtempSync(join(tmpdir(), "lastcall-bench-agent-"));
const emptyProgram = join(folder, "empty.mjs");
writeFileSync(emptyProgram, "setInterval(() => {}, 60_000);\n");

function bunFile(): string | undefined {
  const named = process.env.E2E_AGENT_RUNTIME ?? "bun";
  const found = spawnSync(named, ["--eval", "console.log(process.execPath)"], { encoding: "utf8" });
  return found.status === 0 ? found.stdout.trim() : undefined;
}

/** Builds the file system of the agent's image. */
function makeImage(bun: string, name: string): string {
  const out = join(folder, name);
  const script = join(root, "deploy/images/agent-root.sh");
  // In the npm package the binary is called bun.exe on every platform.
  if (!existsSync(join(folder, "bun"))) symlinkSync(bun, join(folder, "bun"));
  const env = { PATH: `${folder}:${process.env.PATH}` };
  const made = spawnSync("sh", [script, join(root, "dist"), out], { env, encoding: "utf8" });
  if (made.status !== 0) throw new Error(`Cannot make the image: ${made.stderr}`);
  return out;
}

/**
 * Drops a file from the page cache. A file that was just written is mapped in larger pieces than
 * one read from disk: 5 MiB more of the page cache count as resident, which the kernel reclaims
 * when it needs them.
 */
function forgetPages(file: string): void {
  const advice = [`of=${file}`, "oflag=nocache", "conv=notrunc,fdatasync", "count=0"];
  spawnSync("dd", advice);
}

function runtimesOf(image: string | undefined): readonly Runtime[] {
  const node = process.execPath;
  const onNode = { agent: [node, bundle], empty: [node, emptyProgram], env: {}, ships: false };
  if (image === undefined) return [{ name: "Node", ...onNode }];
  const bun = join(image, "bun");
  const agent = [bun, join(image, "app/agent.js")];
  const env = { BUN_JSC_useJIT: "0" };
  return [
    { name: "Node", ...onNode },
    { name: "Bun", agent, empty: [bun, emptyProgram], env, ships: true },
  ];
}

/** An API server without Departures, which accepts any token. */
async function startApi(): Promise<{ readonly port: number; close(): void }> {
  const read = (name: string) => readFileSync(join(fixtures, name));
  const server = createServer(
    { cert: read("server.cert.pem"), key: read("server.key.pem") },
    (_, response) => {
      response.writeHead(404, { "content-type": "application/json" });
      response.end(JSON.stringify({ kind: "Status", code: 404, message: "not found" }));
    },
  );
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { port: (server.address() as AddressInfo).port, close: () => server.close() };
}

function writeToken(): void {
  const claims = { "kubernetes.io": { node: { name: "bench", uid: "0b1f7a3e-7f0e" } } };
  const payload = Buffer.from(JSON.stringify(claims)).toString("base64url");
  writeFileSync(join(folder, "token"), `e30.${payload}.e30`);
}

function start(name: string, runtime: Runtime, how: { args: readonly string[]; env: object }) {
  const [file = "", ...args] = how.args;
  const child = spawn(file, args, {
    env: { PATH: process.env.PATH, ...runtime.env, ...how.env },
    stdio: ["ignore", "ignore", "pipe"],
  });
  const log: string[] = [];
  child.stderr?.setEncoding("utf8").on("data", (text: string) => log.push(text));
  process.once("exit", () => child.kill("SIGKILL"));
  return { name, runtime, child, log, startCpuSeconds: 0 } satisfies Running;
}

function startAgent(name: string, runtime: Runtime, env: object, flags: readonly string[] = []) {
  const ports = ["--health-address=127.0.0.1:0", "--metrics-address=127.0.0.1:0"];
  return start(name, runtime, { args: [...runtime.agent, "agent", ...ports, ...flags], env });
}

interface Measured {
  readonly name: string;
  readonly ships: boolean;
  readonly residentMiB: number;
  /** Without file-backed pages, which the processes of one image share. */
  readonly privateMiB: number;
  readonly peakMiB: number;
  readonly cpuM: number;
}

function measure({ name, runtime, child, startCpuSeconds }: Running, seconds: number): Measured {
  const pid = child.pid ?? 0;
  const cpuM = rounded(((cpuSecondsOf(pid) - startCpuSeconds) / seconds) * 1000);
  const residentMiB = memoryMiB(pid, "VmRSS");
  const privateMiB = memoryMiB(pid, "RssAnon");
  const peakMiB = memoryMiB(pid, "VmHWM");
  return { name, ships: runtime.ships, residentMiB, privateMiB, peakMiB, cpuM };
}

function figuresOf(one: Measured, empty: Measured): Figure[] {
  const { name, residentMiB, privateMiB, peakMiB, cpuM } = one;
  const memoryGoal = one.ships ? { goal: 36 } : {};
  const cpuGoal = one.ships ? { goal: 2 } : {};
  const ratio = rounded(residentMiB / empty.residentMiB);
  return [
    { name: `${name}: resident`, value: residentMiB, unit: "MiB", ...memoryGoal },
    { name: `${name}: resident beside an empty process`, value: ratio, unit: "x" },
    { name: `${name}: of it private`, value: privateMiB, unit: "MiB" },
    { name: `${name}: peak resident`, value: peakMiB, unit: "MiB" },
    { name: `${name}: processor`, value: cpuM, unit: "m", ...cpuGoal },
  ];
}

function sizesOf(image: string | undefined): Figure[] {
  if (image === undefined) return [];
  const files = readdirSync(image, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
  const mib = (some: readonly string[]) =>
    rounded(some.reduce((sum, path) => sum + statSync(path).size, 0) / 2 ** 20);
  const ours = files.filter((path) => path.startsWith(join(image, "app")));
  return [
    { name: "image, unpacked", value: mib(files), unit: "MiB" },
    { name: "image, without Bun and its libraries", value: mib(ours), unit: "MiB" },
  ];
}

async function main(): Promise<void> {
  const bun = bunFile();
  const image = bun === undefined ? undefined : makeImage(bun, "image");
  const fresh = bun === undefined ? undefined : makeImage(bun, "unpacked");
  if (image !== undefined) forgetPages(join(image, "bun"));
  const runtimes = [
    ...runtimesOf(image),
    ...runtimesOf(fresh)
      .slice(1)
      .map((one) => ({ ...one, name: "Bun, just unpacked", ships: false })),
  ];
  const now = () => instant(Date.now());
  const [aws, gcp] = [new AwsMetadataServer(now), new GcpMetadataServer(now)];
  await Promise.all([aws.start(), gcp.start()]);
  const api = await startApi();
  writeToken();
  const env = {
    KUBERNETES_SERVICE_HOST: "127.0.0.1",
    KUBERNETES_SERVICE_PORT: String(api.port),
    NODE_EXTRA_CA_CERTS: join(fixtures, "server.cert.pem"),
    LASTCALL_ACCOUNT_FOLDER: folder,
    LASTCALL_NODE_NAME: "bench",
  };
  const ec2 = ["--cloud=aws", `--metadata-url=${aws.url}`];
  const gce = ["--cloud=gcp", `--metadata-url=${gcp.url}`];
  const all = runtimes.flatMap((runtime) => [
    start("empty", runtime, { args: runtime.empty, env: {} }),
    startAgent(`${runtime.name}, EC2`, runtime, env, ec2),
    startAgent(`${runtime.name}, GCE`, runtime, env, gce),
    ...(runtime.ships
      ? [startAgent(`${runtime.name}, EC2, fallback`, runtime, env, [...ec2, "--fallback=Drain"])]
      : []),
  ]);
  try {
    const listens = ({ name, log }: Running) =>
      name === "empty" || log.join("").includes("listening");
    const what = "every agent listens";
    await waitUntil(async () => all.every(listens), { what, timeoutMs: 60_000 });
    await sleep(settleMs);
    for (const one of all) one.startCpuSeconds = cpuSecondsOf(one.child.pid ?? 0);
    const seconds = Math.max(10, minutes * 60 - settleMs / 1000);
    await sleep(seconds * 1000);
    const figures = runtimes.flatMap((runtime) => {
      const [empty, ...agents] = all
        .filter((one) => one.runtime === runtime)
        .map((one) => measure(one, seconds)) as [Measured, ...Measured[]];
      return agents.flatMap((agent) => figuresOf(agent, empty));
    });
    const requestsOfAgents = `${aws.seen.length} to EC2's metadata, ${gcp.seen.length} to GCE's`;
    writeResult({
      bench: "agent",
      setting: { minutes, bun: bun !== undefined, useJIT: "off on Bun", requestsOfAgents },
      figures: [...figures, ...sizesOf(image)],
    });
  } finally {
    for (const { child } of all) child.kill("SIGTERM");
    await Promise.all([aws.stop(), gcp.stop()]);
    api.close();
    rmSync(folder, { recursive: true });
  }
}

await main();
