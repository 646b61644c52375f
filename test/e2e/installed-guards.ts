/** Installs Lastcall in one of several ways, on an API server that runs no pods. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { parse, parseAllDocuments, stringify } from "yaml";
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

interface HelmRelease {
  readonly release?: string;
  readonly namespace: string;
  readonly values: readonly string[];
}

/** Writes an overlay with these lines over all folders, and returns what kustomize makes of it. */
export async function overlay(place: Place, lines: string): Promise<string> {
  const resources = foldersFrom(place, "overlay");
  return await kustomize(place, { overlay: { ...parse(lines), resources } });
}

/** Writes these kustomizations by their folders, and returns what kustomize makes of the last. */
export async function kustomize(
  { plane, home }: Place,
  files: Readonly<Record<string, object>>,
): Promise<string> {
  let folder = home;
  for (const [name, content] of Object.entries(files)) {
    folder = join(home, name);
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, "kustomization.yaml"), stringify(content));
  }
  const { stdout, stderr, code } = await plane.kubectl(["kustomize", folder]);
  if (code !== 0) throw new Error(`kubectl kustomize: ${stderr}`);
  return stdout;
}

/** All folders, as the overlay of this name lists them: kustomize accepts only relative paths. */
export function foldersFrom({ home }: Pick<Place, "home">, name: string): readonly string[] {
  return folders.map((one) => relative(join(home, name), join(deploy, one)));
}

/** Replaces the namespace in the manifests by hand. */
export async function byHand(place: Place, namespace: string): Promise<string> {
  const text = await overlay(place, "");
  return text.replaceAll("namespace: lastcall\n", `namespace: ${namespace}\n`);
}

export function byHelm(
  { home }: Pick<Place, "home">,
  { release = "another", namespace, values }: HelmRelease,
): string {
  const set = values.flatMap((one) => ["--set", one]);
  const { stdout, stderr, code } = helm(
    ["template", release, chart, "--include-crds", "--namespace", namespace, ...set],
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
  // No controller manager creates the first; Helm does not create the others if told so.
  for (const name of new Set(["default", agent.name, controller.name])) {
    await plane.kubectl(["create", "serviceaccount", name, "-n", agent.namespace]);
  }
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
