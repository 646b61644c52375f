import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { parseAllDocuments } from "yaml";
import { buildHelm } from "../controlplane/build.ts";

export const chart = join(import.meta.dirname, "../../deploy/chart");

export interface HelmResult {
  readonly stdout: string;
  readonly stderr: string;
  readonly code: number;
}

/** The real Helm, in an empty home: it reads nobody's settings and repositories. */
export function helm(
  args: readonly string[],
  how: { readonly home: string; readonly kubeconfig?: string },
): HelmResult {
  const { stdout, stderr, status } = spawnSync(buildHelm(), args, {
    env: {
      PATH: process.env.PATH,
      HOME: how.home,
      ...(how.kubeconfig && { KUBECONFIG: how.kubeconfig }),
    },
    encoding: "utf8",
    maxBuffer: 16 * 1024 * 1024,
  });
  return { stdout, stderr, code: status ?? 1 };
}

export interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
}

/** The objects in a YAML stream or a kubectl list, by kind, namespace and name. */
export function manifestsIn(text: string): ReadonlyMap<string, Manifest> {
  const documents = parseAllDocuments(text).flatMap((one) => {
    // Helm accepts duplicate keys; Argo CD, Flux and kustomize do not.
    if (one.errors[0] !== undefined) throw one.errors[0];
    return one.toJS() ?? [];
  });
  const objects: readonly Manifest[] = documents.flatMap((one) =>
    one.kind === "List" ? one.items : one,
  );
  return new Map(
    objects.map((one) => {
      const { name, namespace = "" } = one.metadata;
      return [`${one.kind} ${namespace}/${name}`, one] as const;
    }),
  );
}

/** The oldest Kubernetes version that the chart supports. */
export const oldest = "1.30.0";

/** Renders the chart with the given flags, in the namespace `lastcall` unless they name another. */
export function renderer(home: string) {
  return (...args: readonly string[]): ReadonlyMap<string, Manifest> => {
    const namespace = args.includes("--namespace") ? [] : ["--namespace", "lastcall"];
    const flags = ["--include-crds", "--kube-version", oldest, ...namespace, ...args];
    const { stdout, stderr, code } = helm(["template", "lastcall", chart, ...flags], { home });
    if (code !== 0 || stderr !== "") throw new Error(`helm template: ${stderr}`);
    return manifestsIn(stdout);
  };
}
