import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import {
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  rmSync,
} from "node:fs";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { folderPrefix } from "../../src/cli/demo/show-demo.ts";
import { compileCache } from "../support/compile-cache.ts";

const program = join(import.meta.dirname, "../../src/cli/main.ts");

let folder: string;
const children: ChildProcess[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "lastcall-demo-end-"));
});
afterEach(async () => {
  for (const child of children.splice(0)) await killed(child);
  rmSync(folder, { recursive: true });
});

interface RunningDemo {
  readonly child: ChildProcess;
  readonly ended: Promise<readonly [code: number | null, signal: NodeJS.Signals | null]>;
}

/**
 * Starts a demo and waits until it prints its kubeconfig's path; temporary files go to the test's
 * own folder.
 */
async function startDemo(...nodeOptions: readonly string[]): Promise<RunningDemo> {
  const args = [...nodeOptions, program, "demo", "--seed", "1", "--speed", "600"];
  const child = spawn(process.execPath, args, {
    env: { PATH: process.env.PATH, HOME: folder, TMPDIR: folder, ...compileCache },
    stdio: ["ignore", "pipe", "ignore"],
  });
  children.push(child);
  const ended = once(child, "exit").then(([code, signal]) => [code, signal] as const);
  if (child.stdout === null) throw new Error("no stdout");
  const lines = createInterface({ input: child.stdout });
  const [line] = (await once(lines, "line")) as [string];
  expect(existsSync(line.replace("KUBECONFIG=", ""))).toBe(true);
  return { child, ended };
}

async function killed(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill("SIGKILL");
  await once(child, "exit");
}

describe("The demo leaves no folder behind", () => {
  it("when the reader of its output closes the pipe", async () => {
    const { child, ended } = await startDemo();
    child.stdout?.destroy();
    expect(await ended).toEqual([0, null]);
    expect(readdirSync(folder)).toEqual([]);
  });

  it.each(["SIGINT", "SIGHUP"] as const)("on %s, and exits with 130", async (signal) => {
    const { child, ended } = await startDemo();
    child.kill(signal);
    expect(await ended).toEqual([130, null]);
    expect(readdirSync(folder)).toEqual([]);
  });

  it("on a second signal that does not wait for the first", async () => {
    const { child, ended } = await startDemo();
    child.kill("SIGINT");
    child.kill("SIGTERM");
    expect(await ended).toEqual([130, null]);
    expect(readdirSync(folder)).toEqual([]);
  });

  it("when it crashes", async () => {
    const crash = "process.on('SIGUSR2', () => { throw new Error('crash'); })";
    const { child, ended } = await startDemo("--import", `data:text/javascript,${crash}`);
    child.kill("SIGUSR2");
    expect(await ended).toEqual([1, null]);
    expect(readdirSync(folder)).toEqual([]);
  });

  it("beyond the start of the next demo, if it was killed, but keeps the folders of others", async () => {
    const alive = `${folderPrefix(hostname())}${process.pid}-abcdef`;
    const elsewhere = `${folderPrefix(`not-${hostname()}`)}${2 ** 22 + 1}-abcdef`;
    for (const name of [alive, elsewhere]) mkdirSync(join(folder, name));
    const first = await startDemo();
    await killed(first.child);
    const [killedOne] = others(alive, elsewhere);
    expect(killedOne).toBeDefined();
    const { child, ended } = await startDemo();
    const [running, ...more] = others(alive, elsewhere);
    expect(more).toEqual([]);
    expect(running).not.toBe(killedOne);
    child.kill("SIGTERM");
    expect(await ended).toEqual([130, null]);
    expect(readdirSync(folder).toSorted()).toEqual([alive, elsewhere].toSorted());
  });

  const others = (...known: readonly string[]): readonly string[] =>
    readdirSync(folder).filter((name) => !known.includes(name));
});

describe("The demo exits at once and says why", () => {
  it.each([
    {
      where: "the folder for temporary files cannot be written to",
      ...{ env: { TMPDIR: "/dev/null/none" }, to: "/dev/null", code: 2 },
      said: /^lastcall: Cannot write the kubeconfig to \/dev\/null\/none: .*, set TMPDIR to a folder/,
    },
    {
      where: "its output goes to a full disk",
      ...{ env: {}, to: "/dev/full", code: 1 },
      said: /^lastcall: Cannot write to standard output: ENOSPC: [^\n]*\n$/,
    },
  ])("if $where", async ({ env, to, code, said }) => {
    const out = openSync(to, "w");
    const child = spawn(process.execPath, [program, "demo", "--seed", "1"], {
      env: { PATH: process.env.PATH, HOME: folder, TMPDIR: folder, ...compileCache, ...env },
      stdio: ["ignore", out, "pipe"],
    });
    children.push(child);
    closeSync(out);
    const [stderr, [exit]] = await Promise.all([
      child.stderr === null ? "" : text(child.stderr),
      once(child, "exit"),
    ]);
    expect(stderr).toMatch(said);
    expect(exit).toBe(code);
  });
});
