import { isLocalClass, isOnOneMachine, type VolumeSite } from "../../core/cluster/local-volume.ts";
import { fieldsOf, isFields, listOf, textOf, valueAt } from "../../core/json/json-field.ts";
import type { Manifest } from "./manifest.ts";
import { type ClaimVolume, readRequirements } from "./pod-template.ts";
import type { Workload } from "./workload.ts";

/**
 * What the input says about volumes on the disk of one machine. It says nothing about a class or a
 * volume that it does not contain.
 */
export interface LocalStorage {
  readonly classes: ReadonlySet<string>;
  /** The cluster's default class, if it is a local one. */
  readonly defaultClass: string | undefined;
  /** Claims whose volumes are local, as `namespace/name`, with the words for it. */
  readonly claims: ReadonlyMap<string, string>;
}

const defaultMarks = [
  "storageclass.kubernetes.io/is-default-class",
  "storageclass.beta.kubernetes.io/is-default-class",
];

export function readLocalStorage(manifests: readonly Manifest[]): LocalStorage {
  const ofKind = (kind: string, group: string) =>
    manifests.filter((one) => one.kind === kind && one.group === group);
  const local = ofKind("StorageClass", "storage.k8s.io").filter(({ json }) =>
    isLocalClass({
      provisioner: textOf(valueAt(json, ["provisioner"])) ?? "",
      bindingMode: textOf(valueAt(json, ["volumeBindingMode"])),
    }),
  );
  const isDefault = ({ annotations }: Manifest) =>
    defaultMarks.some((mark) => annotations[mark] === "true");
  const known = {
    classes: new Set(local.map(({ name }) => name)),
    defaultClass: local.find(isDefault)?.name,
  };
  const claims = new Map<string, string>();
  const volumes = new Set<string>();
  for (const { name, json } of ofKind("PersistentVolume", "")) {
    if (!isOnOneMachine(siteOf(valueAt(json, ["spec"])))) continue;
    volumes.add(name);
    const claim = textOf(valueAt(json, ["spec", "claimRef", "name"]));
    const namespace = textOf(valueAt(json, ["spec", "claimRef", "namespace"])) ?? "default";
    if (claim !== undefined) claims.set(`${namespace}/${claim}`, `PersistentVolume ${name}`);
  }
  for (const { namespace, name, json } of ofKind("PersistentVolumeClaim", "")) {
    const volume = textOf(valueAt(json, ["spec", "volumeName"])) ?? "";
    const className = localClass(known, textOf(valueAt(json, ["spec", "storageClassName"])));
    const key = `${namespace}/${name}`;
    if (volumes.has(volume)) claims.set(key, `PersistentVolume ${volume}`);
    else if (className !== undefined && !claims.has(key)) {
      claims.set(key, `StorageClass ${className}`);
    }
  }
  return { ...known, claims };
}

function siteOf(spec: unknown): VolumeSite {
  const { local, hostPath } = fieldsOf(spec);
  const terms = listOf(valueAt(spec, ["nodeAffinity", "required", "nodeSelectorTerms"]));
  return {
    source: isFields(local) || isFields(hostPath) ? "Machine" : "Elsewhere",
    nodes: {
      nodeSelectorTerms: terms.map((term) => ({
        matchExpressions: readRequirements(fieldsOf(term).matchExpressions),
        matchFields: readRequirements(fieldsOf(term).matchFields),
      })),
    },
  };
}

/** The class if it is local. A claim that names none gets the default; "" means none at all. */
function localClass(
  { classes, defaultClass }: Pick<LocalStorage, "classes" | "defaultClass">,
  named: string | undefined,
): string | undefined {
  if (named === undefined) return defaultClass;
  return classes.has(named) ? named : undefined;
}

/** What says that a workload's volume is on one machine, in words; undefined if nothing does. */
export function localSourceOf(
  volume: ClaimVolume,
  { workload, storage }: { readonly workload: Workload; readonly storage: LocalStorage },
): string | undefined {
  const { namespace, name } = workload;
  if (volume.claim !== undefined) return storage.claims.get(`${namespace}/${volume.claim}`);
  const className = localClass(storage, volume.storageClass);
  if (className !== undefined) return `StorageClass ${className}`;
  // The claims of a StatefulSet's pods: `<template>-<set>-<ordinal>`.
  const prefix = `${namespace}/${volume.name}-${name}-`;
  const found = [...storage.claims].find(
    ([claim]) => claim.startsWith(prefix) && /^\d+$/.test(claim.slice(prefix.length)),
  );
  return found?.[1];
}
