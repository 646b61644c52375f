import { type Fields, fieldsOf } from "../../core/json/json-field.ts";
import type { StatusCause } from "./api-refusal.ts";
import type { ApiContext, ResourceColumn, ResourceType } from "./resource-registry.ts";
import { type ModelObject, timestamp } from "./store/object-store.ts";
import type { StructuralSchema } from "./structural-schema.ts";

interface CrdSpec {
  readonly group: string;
  readonly scope: "Cluster" | "Namespaced";
  readonly names: {
    readonly kind: string;
    readonly plural: string;
    readonly singular?: string;
    readonly shortNames?: readonly string[];
    readonly categories?: readonly string[];
    readonly listKind?: string;
  };
  readonly versions: readonly CrdVersion[];
}

interface CrdVersion {
  readonly name: string;
  readonly served: boolean;
  readonly storage: boolean;
  readonly schema?: { readonly openAPIV3Schema?: StructuralSchema };
  readonly subresources?: { readonly status?: object };
  readonly additionalPrinterColumns?: readonly ResourceColumn[];
  readonly selectableFields?: readonly { readonly jsonPath: string }[];
}

/**
 * The types that a CustomResourceDefinition serves: one per served version, all with one storage.
 */
export function customTypes(crd: ModelObject): readonly ResourceType[] {
  const spec = crd.spec as CrdSpec;
  return spec.versions.filter((version) => version.served).map((one) => typeOf(spec, one));
}

/**
 * Defaults the names and establishes the definition at once, which a real server does a moment
 * later.
 */
export function establish(context: ApiContext, crd: Fields): Fields {
  const spec = crd.spec as CrdSpec;
  const names = {
    ...spec.names,
    singular: spec.names.singular ?? spec.names.kind.toLowerCase(),
    listKind: spec.names.listKind ?? `${spec.names.kind}List`,
  };
  const stored = spec.versions.find((version) => version.storage)?.name;
  const lastTransitionTime = timestamp(context.clock.now());
  const condition = (type: string, reason: string, message: string): object =>
    Object.freeze({ type, status: "True", reason, message, lastTransitionTime });
  const status = {
    acceptedNames: names,
    storedVersions: stored === undefined ? [] : [stored],
    conditions: [
      condition("NamesAccepted", "NoConflicts", "no conflicts found"),
      condition("Established", "InitialNamesAccepted", "the initial names have been accepted"),
    ],
  };
  const conversion = fieldsOf(crd.spec).conversion ?? { strategy: "None" };
  return { ...crd, spec: { ...spec, names, conversion }, status };
}

/** What is invalid in a definition, as far as the model checks. */
export function crdCauses(crd: Fields): readonly StatusCause[] {
  const spec = fieldsOf(crd.spec);
  const names = fieldsOf(spec.names);
  const causes: StatusCause[] = [];
  const wanted = `${names.plural}.${spec.group}`;
  const required = (field: string): void => {
    causes.push({ reason: "FieldValueRequired", message: "Required value", field });
  };
  if (!spec.group) required("spec.group");
  if (!names.plural) required("spec.names.plural");
  if (!names.kind) required("spec.names.kind");
  if (!Array.isArray(spec.versions) || spec.versions.length === 0) required("spec.versions");
  if (causes.length === 0 && fieldsOf(crd.metadata).name !== wanted) {
    const message = `Invalid value: ${JSON.stringify(fieldsOf(crd.metadata).name)}: must be spec.names.plural+"."+spec.group`;
    causes.push({ reason: "FieldValueInvalid", message, field: "metadata.name" });
  }
  return causes;
}

function typeOf(spec: CrdSpec, version: CrdVersion): ResourceType {
  const status = version.subresources?.status !== undefined;
  return Object.freeze({
    group: spec.group,
    version: version.name,
    kind: spec.names.kind,
    plural: spec.names.plural,
    singular: spec.names.singular ?? spec.names.kind.toLowerCase(),
    shortNames: spec.names.shortNames ?? [],
    categories: spec.names.categories ?? [],
    namespaced: spec.scope === "Namespaced",
    storage: `${spec.names.plural}.${spec.group}`,
    traits: {
      statusSubresource: status,
      statusOnCreate: !status,
      generation: true,
      unconditionalUpdate: false,
      createOnUpdate: false,
      returnsDeleted: false,
    },
    custom: {
      schema: version.schema?.openAPIV3Schema ?? { "x-kubernetes-preserve-unknown-fields": true },
      printerColumns: version.additionalPrinterColumns ?? [],
      selectableFields: (version.selectableFields ?? []).map((field) => field.jsonPath.slice(1)),
    },
  });
}
