/**
 * Builds the binaries that the end-to-end tests run: a whole Kubernetes
 * control plane, kwok, and Helm where it is asked for. Nothing is downloaded but Go modules, whose
 * content go.sum pins. Run on its own, it fills the cache and prints where.
 */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";

export interface ControlPlaneBinaries {
  /** Takes etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kubelet or kubectl as first argument. */
  readonly controlplane: string;
  readonly kwok: string;
}

interface GoModule {
  readonly binary: string;
  /** Absent: the module's own. */
  readonly package?: string;
  readonly folder: string;
  readonly ldflags: string;
  /** What somebody who waits wants to know. */
  readonly remark: string;
}

const sources = import.meta.dirname;

export function buildControlPlane(): ControlPlaneBinaries {
  const modules = goModules();
  const folder = join(cacheRoot(), cacheKey(modules));
  if (!existsSync(folder)) buildInto(folder, modules);
  return { controlplane: join(folder, "controlplane"), kwok: join(folder, "kwok") };
}

/** Helm, for the chart; in a folder of its own, since most tests do without. */
export function buildHelm(): string {
  const module: GoModule = {
    binary: "helm",
    package: "helm.sh/helm/v3/cmd/helm",
    folder: join(sources, "helm"),
    ldflags: "-s -w",
    remark: "1 to 3 minutes",
  };
  const folder = join(cacheRoot(), `helm-${cacheKey([module])}`);
  if (!existsSync(folder)) buildInto(folder, [module]);
  return join(folder, module.binary);
}

function goModules(): readonly GoModule[] {
  const kubernetes = kubernetesVersion();
  const [major, minor] = kubernetes.slice(1).split(".");
  const stamps = { gitVersion: kubernetes, gitMajor: major, gitMinor: minor };
  // Without the stamps the server calls itself v0.0.0 and clients refuse it.
  const flags = Object.entries(stamps).map(
    ([name, value]) => `-X k8s.io/component-base/version.${name}=${value}`,
  );
  return [
    {
      binary: "controlplane",
      folder: sources,
      ldflags: ["-s -w", ...flags].join(" "),
      remark: `Kubernetes ${kubernetes}, 5 to 8 minutes on two cores when Go has none of it cached`,
    },
    { binary: "kwok", folder: join(sources, "kwok"), ldflags: "-s -w", remark: "1 to 2 minutes" },
  ];
}

function kubernetesVersion(): string {
  const found = /^\s*k8s\.io\/kubernetes (v\S+)/m.exec(
    readFileSync(join(sources, "go.mod"), "utf8"),
  );
  if (found?.[1] === undefined) {
    throw new Error(
      "Cannot build the control plane: go.mod names no k8s.io/kubernetes, expected one",
    );
  }
  return found[1];
}

/** The cache lies outside the checkout, so that a second checkout finds it. */
function cacheRoot(): string {
  const override = process.env.LASTCALL_E2E_CACHE;
  if (override) return override;
  return join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "lastcall", "controlplane");
}

/** Whatever changes the binaries is in the key, so a finished folder is never stale. */
function cacheKey(modules: readonly GoModule[]): string {
  const hash = createHash("sha256").update(go(["version"], sources));
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
    `Cannot run go ${args[0]} for the control plane: ${reason}, expected the Go that go.mod names on the PATH and its modules within reach`,
  );
}

function report(line: string): void {
  process.stderr.write(`control plane: ${line}\n`);
}

if (import.meta.main) {
  const built = { ...buildControlPlane(), helm: buildHelm() };
  process.stdout.write(`${JSON.stringify(built, null, 2)}\n`);
}
