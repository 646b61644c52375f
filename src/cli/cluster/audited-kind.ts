import type { TemplatePath } from "../../audit/objects/manifest.ts";
import type { KubeApi } from "../../contracts/kube-api.ts";
import { fieldsOf, listOf, textOf, valueAt } from "../../core/json/json-field.ts";
import { LastcallError } from "../../errors.ts";

/** A collection that the audit reads from a live cluster. */
export interface AuditedKind {
  readonly path: string;
  readonly apiVersion: string;
  readonly kind: string;
}

interface Discovery {
  readonly api: KubeApi;
  readonly signal?: AbortSignal | undefined;
}

/** A kind of custom resource, in whatever version the API server has it. */
export interface CustomKind {
  readonly kind: string;
  readonly group: string;
}

/**
 * The collections of custom resources that have pods. Throws USAGE if a group is missing or the
 * server does not know the kind.
 */
export async function customKinds(
  templatePaths: readonly TemplatePath[],
  discovery: Discovery,
): Promise<readonly AuditedKind[]> {
  const kinds: AuditedKind[] = [];
  for (const one of templatePaths) kinds.push(await customKind(one, discovery));
  return kinds;
}

async function customKind(
  { kind, group, path }: TemplatePath,
  discovery: Discovery,
): Promise<AuditedKind> {
  const typed = `--template-path ${group === undefined ? kind : `${kind}.${group}`}=${path.join(".")}`;
  if (group === undefined) {
    const fix = `name its API group when auditing a cluster, as in ${kind}.example.com=${path.join(".")}`;
    throw new LastcallError("USAGE", `Cannot use ${typed}: ${fix}`);
  }
  const found = await findKind({ kind, group }, discovery);
  if (found !== undefined) return found;
  const fix = "check kind and group with: kubectl api-resources";
  throw new LastcallError("USAGE", `Cannot use ${typed}: the API server has no such kind, ${fix}`);
}

/**
 * The collection of a kind, in the version that the API server prefers of those that have it: the
 * kinds of a group need not have the same. Undefined if there is none.
 */
export async function findKind(
  { kind, group }: CustomKind,
  discovery: Discovery,
): Promise<AuditedKind | undefined> {
  const { preferredVersion, versions } = fieldsOf(await discover(`/apis/${group}`, discovery));
  const written = [preferredVersion, ...listOf(versions)].map((one) => fieldsOf(one).groupVersion);
  for (const apiVersion of new Set(written.flatMap((one) => textOf(one) ?? []))) {
    const found = await discover(`/apis/${apiVersion}`, discovery);
    const resources = listOf(valueAt(found, ["resources"])).map(fieldsOf);
    const resource = resources.find((one) => one.kind === kind && !`${one.name}`.includes("/"));
    if (resource !== undefined) {
      return { path: `/apis/${apiVersion}/${resource.name}`, apiVersion, kind };
    }
  }
  return undefined;
}

async function discover(path: string, { api, signal }: Discovery): Promise<unknown> {
  const { status, body } = await api.send({ method: "GET", path, signal });
  return status === 200 ? body : undefined;
}
