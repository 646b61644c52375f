import { type ChildProcess, execFile, spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { afterEach, beforeEach, expect, it } from "vitest";
import { buildControlPlane } from "../controlplane/build.ts";
import { compileCache } from "../support/compile-cache.ts";
import { waitUntil } from "../support/wait-until.ts";

const run = promisify(execFile);
/** The kubectl built with the control plane, or the one that the environment names. */
const named = process.env.LASTCALL_KUBECTL;
const binary = named ?? buildControlPlane().controlplane;
const firstArgs = named === undefined ? ["kubectl"] : [];
const program = join(import.meta.dirname, "../../src/cli/main.ts");

let home: string;
let demo: ChildProcess;
let kubeconfig: string;
let ended: Promise<number | null>;

/** The demo in a process of its own, without a terminal. */
beforeEach(async () => {
  home = mkdtempSync(join(tmpdir(), "lastcall-demo-home-"));
  demo = spawn(process.execPath, [program, "demo", "--seed", "1", "--speed", "120"], {
    env: { ...process.env, ...compileCache },
    stdio: ["ignore", "pipe", "inherit"],
  });
  ended = new Promise((resolve) => demo.once("exit", (code) => resolve(code)));
  if (demo.stdout === null) throw new Error("no stdout");
  const lines = createInterface({ input: demo.stdout });
  kubeconfig = await new Promise((resolve, reject) => {
    lines.once("line", (line) => resolve(line.replace(/^KUBECONFIG=/, "")));
    demo.once("exit", (code) => reject(new Error(`the demo ended with ${code}`)));
  });
});

afterEach(async () => {
  demo.kill("SIGKILL");
  await ended;
  rmSync(home, { recursive: true });
});

async function kubectl(...args: readonly string[]): Promise<string> {
  const env = { ...process.env, KUBECONFIG: kubeconfig, HOME: home };
  const { stdout } = await run(binary, [...firstArgs, ...args], { env, timeout: 60_000 });
  return stdout;
}

it("The real kubectl shows departures and nodes of a running demo, and their changes", async () => {
  const text = await kubectl("get", "departures,nodes");
  expect(text).toMatch(/NAME +NODE +CAUSE +PHASE +DEPARTS +DEADLINE +PODS +ENDED AS +AGE/);
  expect(text.match(/^departure\S+ +spot-[bcd]-\w+ +Planned/gm)?.length).toBeGreaterThanOrEqual(18);
  expect(text.match(/^node\/spot-[bcd]-\w+ +\S+/gm)).toHaveLength(18);
  // The first node leaves after two minutes of model time, which take one second.
  await waitUntil(async () => (await kubectl("get", "departures")).includes(" Ended "), {
    what: "a departure has ended",
    timeoutMs: 60_000,
  });
}, 120_000);

it("A hold set with the real kubectl holds the departure of its node", async () => {
  const [name = ""] = (
    await kubectl("get", "departures", "-o", "jsonpath={.items[*].spec.node.name}")
  ).split(" ");
  await kubectl("annotate", "node", name, "lastcall.dev/hold=true");
  const phase = `jsonpath={.items[?(@.spec.node.name=="${name}")].status.phase}`;
  await waitUntil(async () => (await kubectl("get", "departures", "-o", phase)).includes("Held"), {
    what: `the departure of ${name} is held`,
    timeoutMs: 60_000,
  });
}, 120_000);

it.each<[string, string, RegExp]>([
  [
    "explains a Lastcall field",
    "explain departure.spec.cause",
    /KIND: +Departure\n[\s\S]*FIELD: cause/,
  ],
  ["explains a Lastcall list", "explain departurepolicy.spec.windows", /FIELD: windows/],
  ["explains a whole policy", "explain dpol --recursive", /budgets\s+<\[\]Object>/],
  [
    "says that it has no schema of a Kubernetes kind",
    "explain pod",
    /The model cluster has no schema of Pod/,
  ],
  ["checks a permission", "auth can-i get nodes", /^yes\n$/],
  ["lists permissions", "auth can-i --list", /\*\.\* +\[\] +\[\] +\[\*\]/],
  ["creates a namespace", "create namespace x", /^namespace\/x created\n$/],
  ["creates a ConfigMap", "create configmap c --from-literal=a=b", /^configmap\/c created\n$/],
  [
    "creates a Deployment",
    "create deployment d --image=nginx --replicas=2 --port=80",
    /^deployment.apps\/d created\n$/,
  ],
])("The demo's cluster %s (kubectl %s)", async (_, words, expected) => {
  expect(await kubectl(...words.split(" "))).toMatch(expected);
});

it("A body that the demo's cluster cannot read is rejected with an alternative", async () => {
  const job = kubectl("create", "job", "j", "--image=nginx");
  await expect(job).rejects.toMatchObject({
    stderr: expect.stringContaining("kubectl apply -f -"),
  });
  const text = await kubectl(
    "create",
    "job",
    "j",
    "--image=nginx",
    "--dry-run=client",
    "-o",
    "yaml",
  );
  const file = join(home, "job.yaml");
  writeFileSync(file, text);
  expect(await kubectl("apply", "-f", file)).toBe("job.batch/j created\n");
});

it("SIGTERM ends the demo with 130 and removes its kubeconfig", async () => {
  expect(existsSync(kubeconfig)).toBe(true);
  demo.kill("SIGTERM");
  expect(await ended).toBe(130);
  expect(existsSync(kubeconfig)).toBe(false);
}, 60_000);
