/**
 * Builds the project's Go modules into a cache outside the checkout, keyed by everything that
 * affects the result.
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
  /** Absent: the module's own package. */
  readonly package?: string;
  readonly folder: string;
  /** The module's requirements, in the folder; absent: go.mod. Beside it is the file with sums. */
  readonly modfile?: string;
  readonly tags?: readonly string[];
  readonly ldflags: string;
  /** For whoever waits for the build, such as how long it takes. */
  readonly remark: string;
}

/**
 * The folder with the binaries of these modules, which are built now unless the cache has them. The
 * folder's name starts with `name`.
 */
export function buildGo(name: string, modules: readonly GoModule[]): string {
  const folder = join(cacheRoot(), `${name}-${cacheKey(modules)}`);
  awaitOthers(folder);
  if (!existsSync(folder)) buildInto(folder, modules);
  return folder;
}

/**
 * Waits while another process on this machine builds the same: two builds in parallel would each
 * take twice as long. If two start at the same instant, neither sees the other and both build,
 * which does no harm.
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

/**
 * No build takes longer. An older folder was left behind, and its process id may have been reused.
 */
const longestBuildMs = 30 * 60_000;

/** The process that is building into this folder, from the name of its unfinished one. */
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
    // The process exists but belongs to another user.
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

/** The cache is outside the checkout, so that other checkouts share it. */
export function cacheRoot(): string {
  const override = process.env.LASTCALL_E2E_CACHE;
  if (override) return override;
  return join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "lastcall", "controlplane");
}

/** The key covers everything that changes the binaries, so a finished folder is never stale. */
function cacheKey(modules: readonly GoModule[]): string {
  const hash = createHash("sha256").update(go(["version"], { folder: root, toolchain: "local" }));
  for (const module of modules) {
    hash.update([module.ldflags, ...(module.tags ?? [])].join(" "));
    for (const file of sourcesOf(module)) hash.update(readFileSync(join(module.folder, file)));
  }
  return hash.digest("hex");
}

function sourcesOf({ folder, modfile = "go.mod" }: GoModule): readonly string[] {
  const programs = readdirSync(folder).filter((name) => name.endsWith(".go"));
  const pins = [modfile, modfile.replace(/\.mod$/, ".sum")];
  return [...programs, ...pins].filter((file) => existsSync(join(folder, file))).sort();
}

/**
 * Renaming the folder marks the build as finished; a failed build leaves no folder of that name.
 */
function buildInto(folder: string, modules: readonly GoModule[]): void {
  const unfinished = `${folder}.${process.pid}.tmp`;
  mkdirSync(unfinished, { recursive: true });
  try {
    for (const module of modules) buildModule(module, unfinished);
    renameSync(unfinished, folder);
  } catch (error) {
    rmSync(unfinished, { recursive: true, force: true });
    // If another run has finished the same build first, its result is as good.
    if (!existsSync(folder)) throw error;
  }
  report(`ready in ${folder}`);
}

function buildModule(module: GoModule, target: string): void {
  const startedAt = performance.now();
  report(`building ${module.binary} (${module.remark})`);
  const { modfile = "go.mod", tags = [], ldflags } = module;
  const wanted = [`-modfile=${modfile}`, `-tags=${tags.join(",")}`, "-ldflags", ldflags];
  const output = join(target, module.binary);
  const toolchain = toolchainOf(join(module.folder, modfile));
  const where = { folder: module.folder, toolchain };
  go(["build", "-trimpath", ...wanted, "-o", output, module.package ?? "."], where);
  report(`built ${module.binary} in ${Math.round((performance.now() - startedAt) / 1000)} s`);
}

/**
 * The Go that a module names because it needs a newer one than that on the PATH: it comes from the
 * module proxy, as the modules do, and is checked against the same checksum database.
 */
function toolchainOf(modfile: string): string {
  return /^toolchain (\S+)/m.exec(readFileSync(modfile, "utf8"))?.[1] ?? "local";
}

/** Runs at low priority: a build that takes all cores for minutes must not stop other work. */
function go(
  args: readonly string[],
  { folder, toolchain }: { readonly folder: string; readonly toolchain: string },
): string {
  const settings = {
    GOTOOLCHAIN: toolchain,
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
