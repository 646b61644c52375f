import type { ResourceRegistry } from "../api/resource-registry.ts";
import { apiVersionOf, type ResourceType } from "../api/resource-type.ts";

/**
 * `/openapi/v2`, which old and some new parts of kubectl want in protobuf: a document with nothing
 * in it but its version (field 1, the text `2.0`), so that kubectl checks nothing on its side.
 */
export const openApiV2 = Object.freeze({
  contentType: "application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
  body: "\n\u00032.0",
});

/**
 * So much of `/openapi/v3` that kubectl sees that the server validates fields itself, and that `kubectl
 * explain` knows the kinds of Lastcall by their definitions; undefined for other paths.
 */
export function openApi(registry: ResourceRegistry, path: string): object | undefined {
  if (path === "/openapi/v3") return { paths: pathsOf(registry) };
  if (!path.startsWith("/openapi/v3/")) return undefined;
  const groupVersion = path.slice("/openapi/v3/".length);
  const types = registry.all().filter((type) => documentOf(type) === groupVersion);
  if (types.length === 0) return undefined;
  return {
    openapi: "3.0.0",
    info: { title: "Lastcall model cluster", version: "v1" },
    paths: Object.fromEntries(types.map((type) => [pathOf(type), operationOf(type)])),
    components: {
      schemas: Object.fromEntries(types.map((type) => [nameOf(type), schemaOf(type)])),
    },
  };
}

function pathsOf(registry: ResourceRegistry): Readonly<Record<string, object>> {
  const documents = new Set(registry.all().map(documentOf));
  return Object.fromEntries(
    [...documents].map((one) => [one, { serverRelativeURL: `/openapi/v3/${one}` }]),
  );
}

function documentOf(type: ResourceType): string {
  return type.group === "" ? `api/${type.version}` : `apis/${apiVersionOf(type)}`;
}

function pathOf(type: ResourceType): string {
  const scope = type.namespaced ? "/namespaces/{namespace}" : "";
  return `/${documentOf(type)}${scope}/${type.plural}/{name}`;
}

function nameOf({ group, version, kind }: ResourceType): string {
  const reversed = group.split(".").toReversed().join(".");
  return [reversed, version, kind].filter((part) => part !== "").join(".");
}

/** The kinds of Kubernetes itself have none in the model, which explain says where it is asked. */
function schemaOf(type: ResourceType): object {
  const { group, version, kind } = type;
  const gvks = { "x-kubernetes-group-version-kind": [{ group, version, kind }] };
  const description = `The model cluster has no schema of ${kind}; ask a real cluster for its fields.`;
  if (type.custom === undefined) return { type: "object", description, ...gvks };
  const { properties } = type.custom.schema;
  const own = { apiVersion: text, kind: text, metadata: anyObject };
  return { ...type.custom.schema, properties: { ...properties, ...own }, ...gvks };
}

const text = { type: "string", description: "As in every object of Kubernetes." };
const anyObject = { type: "object", description: "As in every object of Kubernetes." };

function operationOf(type: ResourceType): object {
  const { group, version, kind } = type;
  const parameters = ["dryRun", "fieldManager", "fieldValidation", "force"].map((name) => ({
    name,
    in: "query",
    schema: { type: "string" },
  }));
  const responses = { 200: { description: "OK" } };
  const gvk = { "x-kubernetes-group-version-kind": { group, version, kind } };
  return { patch: { parameters, responses, ...gvk } };
}
