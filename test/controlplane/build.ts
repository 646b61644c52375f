/**
 * Builds the binaries that the end-to-end tests run: a whole Kubernetes control plane, kwok, and,
 * on request, Helm, Helmfile and Karpenter. Only Go modules are downloaded, and go.sum pins their
 * content. When run as a program, it fills the cache and prints its folder: with what nearly all
 * tests need, or with what the arguments name: `karpenter` and `helmfile`, each of which one test
 * needs. E2E_KUBERNETES=1.30 builds and runs the control plane of that version instead of the one
 * that go.mod pins.
 */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { buildGo, type GoModule } from "../../tools/go-build.ts";

export interface ControlPlaneBinaries {
  /**
   * Its first argument is etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kubelet or
   * kubectl.
   */
  readonly controlplane: string;
  readonly kwok: string;
}

const sources = import.meta.dirname;

export function buildControlPlane(): ControlPlaneBinaries {
  const folder = buildGo("controlplane", goModules(process.env.E2E_KUBERNETES));
  return { controlplane: join(folder, "controlplane"), kwok: join(folder, "kwok") };
}

/** Helm, for the chart. It has its own folder, because most tests do not need it. */
export function buildHelm(): string {
  return buildTool("helm", "helm.sh/helm/v3/cmd/helm", "1 to 3 minutes");
}

/** Helmfile, which runs Helm; needed by one test. */
export function buildHelmfile(): string {
  const remark = "5 to 8 minutes on two cores when Go has none of it cached";
  return buildTool("helmfile", "github.com/helmfile/helmfile", remark);
}

/** Karpenter with its kwok provider, which needs no cloud; needed by one test. */
export function buildKarpenter(): string {
  const folder = join(sources, "karpenter");
  const remark = "2 to 3 minutes on two cores when Go has none of it cached";
  const module: GoModule = { binary: "karpenter", folder, ldflags: "-s -w", remark };
  return join(buildGo("karpenter", [module]), "karpenter");
}

/** Builds a tool from a module that contains nothing but its version. */
function buildTool(binary: string, path: string, remark: string): string {
  const folder = join(sources, binary);
  const module: GoModule = { binary, package: path, folder, ldflags: "-s -w", remark };
  return join(buildGo(binary, [module]), binary);
}

function goModules(version: string | undefined): readonly GoModule[] {
  const modfile = moduleFileOf(version);
  const kubernetes = kubernetesVersion(modfile);
  const [major, minor] = kubernetes.slice(1).split(".");
  const stamps = { gitVersion: kubernetes, gitMajor: major, gitMinor: minor };
  // Without these values the server reports version v0.0.0, and clients refuse it.
  const flags = Object.entries(stamps).map(
    ([name, value]) => `-X k8s.io/component-base/version.${name}=${value}`,
  );
  return [
    {
      binary: "controlplane",
      folder: sources,
      modfile,
      // The kubelet is written against the packages of one version.
      tags: version === undefined ? [] : ["nokubelet"],
      ldflags: ["-s -w", ...flags].join(" "),
      remark: `Kubernetes ${kubernetes}, 5 to 8 minutes on two cores when Go has none of it cached`,
    },
    { binary: "kwok", folder: join(sources, "kwok"), ldflags: "-s -w", remark: "1 to 2 minutes" },
  ];
}

/** The requirements of a version such as 1.30; undefined: of the version that all tests run on. */
function moduleFileOf(version: string | undefined): string {
  if (version === undefined) return "go.mod";
  const modfile = join("versions", `${version}.mod`);
  if (existsSync(join(sources, modfile))) return modfile;
  throw new Error(
    `Cannot build Kubernetes ${version}: test/controlplane/${modfile} does not exist, expected E2E_KUBERNETES to name one that does`,
  );
}

/** The version with its patch, such as v1.36.3. */
export function kubernetesVersion(modfile: string): string {
  const found = /^\s*k8s\.io\/kubernetes (v\S+)/m.exec(
    readFileSync(join(sources, modfile), "utf8"),
  );
  if (found?.[1] === undefined) {
    throw new Error(
      `Cannot build the control plane: ${modfile} names no k8s.io/kubernetes, expected one`,
    );
  }
  return found[1];
}

const slow: Readonly<Record<string, () => string>> = {
  karpenter: buildKarpenter,
  helmfile: buildHelmfile,
};

function buildNamed(name: string): readonly [name: string, file: string] {
  const build = slow[name];
  if (build === undefined) {
    const known = Object.keys(slow).join(" or ");
    throw new Error(`Cannot build ${name}: it is not known, expected ${known}, or nothing`);
  }
  return [name, build()];
}

if (import.meta.main) {
  const names = process.argv.slice(2);
  const built =
    names.length > 0
      ? Object.fromEntries(names.map(buildNamed))
      : { ...buildControlPlane(), helm: buildHelm() };
  process.stdout.write(`${JSON.stringify(built, null, 2)}\n`);
}
