import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { open } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { root } from "../../tools/source-tree.ts";
import { waitUntil } from "../support/wait-until.ts";

// Several processes start one after another, and compile at low priority on a busy machine.
vi.setConfig({ testTimeout: 120_000 });
const startedWithinMs = 60_000;

/** A compiler that records its start, and exits when the pipe is written to. */
const compiler = `#!/bin/sh
[ "$1" = version ] && { echo go1; exit; }
while [ "$1" != -o ]; do shift; done
echo built >> "$TRACE"
cat "$PIPE"
echo binary > "$2"
`;

const program = `
import { buildGo } from ${JSON.stringify(join(root, "tools/go-build.ts"))};
const { SOURCES: folder, MODFILE: modfile } = process.env;
const module = { binary: "tool", folder, modfile, ldflags: "", remark: "soon" };
process.stdout.write(buildGo("tool", [module]));
`;

let home: string;
let builders: ChildProcess[];

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "lastcall-go-build-"));
  builders = [];
  for (const folder of ["bin", "sources", "cache"]) mkdirSync(join(home, folder));
  writeFileSync(join(home, "sources/go.mod"), "module tool\n");
  writeFileSync(join(home, "bin/go"), compiler);
  chmodSync(join(home, "bin/go"), 0o755);
  writeFileSync(join(home, "program.ts"), program);
  execFileSync("mkfifo", [join(home, "pipe")]);
});

afterEach(() => {
  // Kills the builders with the compilers that they have started.
  for (const { pid = 0 } of builders) {
    try {
      process.kill(-pid, "SIGKILL");
    } catch {
      // It has already exited.
    }
  }
  rmSync(home, { recursive: true });
});

function startBuilder(more: Readonly<Record<string, string>> = {}) {
  const child = spawn(process.execPath, [join(home, "program.ts")], {
    detached: true,
    env: {
      PATH: `${join(home, "bin")}:${process.env.PATH}`,
      LASTCALL_E2E_CACHE: join(home, "cache"),
      SOURCES: join(home, "sources"),
      TRACE: join(home, "trace"),
      PIPE: join(home, "pipe"),
      ...more,
    },
  });
  builders.push(child);
  const said = { out: "", err: "" };
  child.stdout.on("data", (chunk) => {
    said.out += chunk;
  });
  child.stderr.on("data", (chunk) => {
    said.err += chunk;
  });
  const ended = new Promise<number | null>((resolve) => child.once("close", resolve));
  const says = (what: string) =>
    waitUntil(async () => said.err.includes(what), {
      what: `it says ${what}`,
      timeoutMs: startedWithinMs,
    });
  return { child, said, ended, says };
}

function builds(): number {
  const trace = join(home, "trace");
  return existsSync(trace) ? readFileSync(trace, "utf8").trim().split("\n").length : 0;
}

function compiling(count: number) {
  return waitUntil(async () => builds() === count, {
    what: "it compiles",
    timeoutMs: startedWithinMs,
  });
}

/** Lets a running compiler exit. */
async function finish(): Promise<void> {
  const pipe = await open(join(home, "pipe"), "w");
  await pipe.close();
}

it("a second builder waits for the first, and uses its result", async () => {
  const first = startBuilder();
  await compiling(1);
  const second = startBuilder();
  await second.says("waiting for process");
  await finish();
  expect([await first.ended, await second.ended]).toEqual([0, 0]);
  expect(second.said.out).toBe(first.said.out);
  expect(readFileSync(join(second.said.out, "tool"), "utf8")).toBe("binary\n");
  expect(builds()).toBe(1);
  expect(readdirSync(join(home, "cache"))).toHaveLength(1);
});

it("other requirements for the same sources are another build", async () => {
  const first = startBuilder();
  await compiling(1);
  await finish();
  await first.ended;
  for (const name of ["other.mod", "other.sum"]) writeFileSync(join(home, "sources", name), name);
  const second = startBuilder({ MODFILE: "other.mod" });
  await compiling(2);
  await finish();
  expect(await second.ended).toBe(0);
  expect(second.said.out).not.toBe(first.said.out);
  writeFileSync(join(home, "sources/other.sum"), "changed");
  const third = startBuilder({ MODFILE: "other.mod" });
  await compiling(3);
  await finish();
  expect(await third.ended).toBe(0);
});

it("a builder does not wait for one that was killed", async () => {
  const first = startBuilder();
  await compiling(1);
  process.kill(-(first.child.pid ?? 0), "SIGKILL");
  await first.ended;
  const second = startBuilder();
  await compiling(2);
  await finish();
  expect(await second.ended).toBe(0);
  expect(readFileSync(join(second.said.out, "tool"), "utf8")).toBe("binary\n");
});

it("a builder builds itself if the one that it waits for fails", async () => {
  const first = startBuilder();
  await compiling(1);
  const second = startBuilder();
  await second.says("waiting for process");
  process.kill(-(first.child.pid ?? 0), "SIGKILL");
  await compiling(2);
  await finish();
  expect(await second.ended).toBe(0);
});

it("a builder does not wait for leftovers an hour old, even if their pid is in use", async () => {
  const first = startBuilder();
  await compiling(1);
  process.kill(-(first.child.pid ?? 0), "SIGKILL");
  await first.ended;
  const [left = ""] = readdirSync(join(home, "cache"));
  const now = join(home, "cache", left.replace(/\d+\.tmp$/, `${process.pid}.tmp`));
  renameSync(join(home, "cache", left), now);
  const hourAgo = Date.now() / 1000 - 3600;
  utimesSync(now, hourAgo, hourAgo);
  const second = startBuilder();
  await compiling(2);
  await finish();
  expect(await second.ended).toBe(0);
});
