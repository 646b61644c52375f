/** Installs Lastcall in one of several ways, on an API server that runs no pods. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { parseAllDocuments } from "yaml";
import type { ControlPlane } from "../support/control-plane.ts";
import { chart, helm } from "../support/helm.ts";
import { mustRun } from "./must-run.ts";

const deploy = join(import.meta.dirname, "../../deploy");
const folders = ["base", "agent-fallback/drain", "restart-owner"];

interface Made {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
  readonly spec?: {
    readonly template?: { readonly spec: { readonly serviceAccountName: string } };
  };
}

interface Place {
  readonly plane: ControlPlane;
  /** A folder for files. */
  readonly home: string;
}

/** A ServiceAccount as the manifests name it. */
export interface Account {
  readonly namespace: string;
  readonly name: string;
}

export interface Installed {
  readonly agent: Account;
  readonly controller: Account;
  /** Deletes everything but the namespace and the definitions. */
  remove(): Promise<void>;
}

/** Writes an overlay with these lines over all folders, and returns what kustomize makes of it. */
export async function overlay({ plane, home }: Place, lines: string): Promise<string> {
  const folder = join(home, "overlay");
  mkdirSync(folder, { recursive: true });
  // Kustomize accepts only relative paths.
  const resources = folders.map((one) => `- ${relative(folder, join(deploy, one))}`);
  writeFileSync(
    join(folder, "kustomization.yaml"),
    `${lines}\nresources:\n${resources.join("\n")}\n`,
  );
  const { stdout, stderr, code } = await plane.kubectl(["kustomize", folder]);
  if (code !== 0) throw new Error(`kubectl kustomize: ${stderr}`);
  return stdout;
}

/** Replaces the namespace in the manifests by hand. */
export async function byHand(place: Place, namespace: string): Promise<string> {
  const text = await overlay(place, "");
  return text.replaceAll("namespace: lastcall\n", `namespace: ${namespace}\n`);
}

export function byHelm(
  { home }: Pick<Place, "home">,
  namespace: string,
  values: readonly string[],
): string {
  const set = values.flatMap((one) => ["--set", one]);
  const { stdout, stderr, code } = helm(
    ["template", "another", chart, "--include-crds", "--namespace", namespace, ...set],
    { home },
  );
  if (code !== 0) throw new Error(`helm template: ${stderr}`);
  return stdout;
}

export async function install(plane: ControlPlane, text: string): Promise<Installed> {
  const objects = parseAllDocuments(text).flatMap((one): Made[] => {
    const object = one.toJS();
    return object === null ? [] : [object];
  });
  const agent = accountOf(objects, "DaemonSet");
  const controller = accountOf(objects, "Deployment");
  await plane.kubectl(["create", "namespace", agent.namespace]);
  // No controller manager creates it.
  await plane.kubectl(["create", "serviceaccount", "default", "-n", agent.namespace]);
  const items = objects.filter(({ kind }) => kind !== "Namespace");
  await mustRun(plane, ["apply", "-f", "-"], { apiVersion: "v1", kind: "List", items });
  const removed = items.filter(({ kind }) => kind !== "CustomResourceDefinition");
  return {
    ...{ agent, controller },
    remove: () =>
      mustRun(plane, ["delete", "--wait=false", "-f", "-"], {
        ...{ apiVersion: "v1", kind: "List", items: removed },
      }),
  };
}

function accountOf(objects: readonly Made[], kind: string): Account {
  const found = objects.find((one) => one.kind === kind);
  const { metadata, spec } = found ?? {};
  return {
    namespace: metadata?.namespace ?? "",
    name: spec?.template?.spec.serviceAccountName ?? "",
  };
}
