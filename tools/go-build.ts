/**
 * Builds Go modules of ours into a cache outside the checkout, keyed by all that goes into them.
 */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
} from "node:fs";
import { homedir } from "node:os";
import { basename, join } from "node:path";
import { root } from "./source-tree.ts";

export interface GoModule {
  readonly binary: string;
  /** Absent: the module's own. */
  readonly package?: string;
  readonly folder: string;
  readonly ldflags: string;
  /** What somebody who waits wants to know. */
  readonly remark: string;
}

/**
 * The folder of the binaries of these modules, built now where the cache has none of this content.
 * `name` is the first part of the folder's name.
 */
export function buildGo(name: string, modules: readonly GoModule[]): string {
  const folder = join(cacheRoot(), `${name}-${cacheKey(modules)}`);
  awaitOthers(folder);
  if (!existsSync(folder)) buildInto(folder, modules);
  return folder;
}

/**
 * Waits while another process of this machine builds the same: two at a time would each take twice
 * as long. Two that begin at one instant see nobody, and both build, which does no harm.
 */
function awaitOthers(folder: string): void {
  const nobody = new Int32Array(new SharedArrayBuffer(4));
  for (let waited = 0; !existsSync(folder); waited++) {
    const builder = builderOf(folder);
    if (builder === undefined) return;
    if (waited === 0) report(`waiting for process ${builder}, which builds the same`);
    Atomics.wait(nobody, 0, 0, 1000);
  }
}

/** No build takes longer; what is older was left behind, and its process may be another by now. */
const longestBuildMs = 30 * 60_000;

/** The process that builds into this folder now, by the name of its unfinished one. */
function builderOf(folder: string): number | undefined {
  if (!existsSync(cacheRoot())) return undefined;
  const prefix = `${basename(folder)}.`;
  const unfinished = readdirSync(cacheRoot())
    .filter((name) => name.startsWith(prefix))
    .filter((name) => {
      const found = statSync(join(cacheRoot(), name), { throwIfNoEntry: false });
      return found !== undefined && Date.now() - found.mtimeMs < longestBuildMs;
    });
  return unfinished.map((name) => Number.parseInt(name.slice(prefix.length), 10)).find(isAlive);
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    // Of another user, and there.
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

/** The cache lies outside the checkout, so that a second checkout finds it. */
export function cacheRoot(): string {
  const override = process.env.LASTCALL_E2E_CACHE;
  if (override) return override;
  return join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "lastcall", "controlplane");
}

/** Whatever changes the binaries is in the key, so a finished folder is never stale. */
function cacheKey(modules: readonly GoModule[]): string {
  const hash = createHash("sha256").update(go(["version"], root));
  for (const { folder, ldflags } of modules) {
    hash.update(ldflags);
    const files = readdirSync(folder).filter((name) => /^go\.(mod|sum)$|\.go$/.test(name));
    for (const file of files.sort()) hash.update(readFileSync(join(folder, file)));
  }
  return hash.digest("hex");
}

/** The rename is what marks a build as finished; a broken one leaves no such folder. */
function buildInto(folder: string, modules: readonly GoModule[]): void {
  const unfinished = `${folder}.${process.pid}.tmp`;
  mkdirSync(unfinished, { recursive: true });
  try {
    for (const module of modules) buildModule(module, unfinished);
    renameSync(unfinished, folder);
  } catch (error) {
    rmSync(unfinished, { recursive: true, force: true });
    // Another run finished the same build first, and its result is as good.
    if (!existsSync(folder)) throw error;
  }
  report(`ready in ${folder}`);
}

function buildModule(module: GoModule, target: string): void {
  const startedAt = performance.now();
  report(`building ${module.binary} (${module.remark})`);
  const output = join(target, module.binary);
  go(
    ["build", "-trimpath", "-ldflags", module.ldflags, "-o", output, module.package ?? "."],
    module.folder,
  );
  report(`built ${module.binary} in ${Math.round((performance.now() - startedAt) / 1000)} s`);
}

/** Runs at low priority: a build that takes all cores for minutes must not stop other work. */
function go(args: readonly string[], folder: string): string {
  const settings = {
    GOTOOLCHAIN: "local",
    GOFLAGS: "-mod=readonly",
    GOWORK: "off",
    CGO_ENABLED: "0",
  };
  const result = spawnSync("nice", ["-n", "10", "go", ...args], {
    cwd: folder,
    env: { ...process.env, ...settings },
    encoding: "utf8",
    stdio: ["ignore", "pipe", "inherit"],
  });
  if (result.status === 0) return result.stdout;
  const reason = result.error?.message ?? `it ended with ${result.signal ?? result.status}`;
  throw new Error(
    `Cannot run go ${args[0]} in ${folder}: ${reason}, expected the Go that go.mod names on the PATH and its modules within reach`,
  );
}

function report(line: string): void {
  process.stderr.write(`go build: ${line}\n`);
}
