/** A path below `/api` or `/apis`, taken apart; `name` is absent for a collection. */
export interface ResourcePath {
  /** `v1` or `group/version`. */
  readonly apiVersion: string;
  readonly plural: string;
  readonly namespace: string | undefined;
  readonly name: string | undefined;
  readonly subresource: string | undefined;
}

/** Takes a request path apart; undefined where it names no resource. */
export function parseResourcePath(path: string): ResourcePath | undefined {
  const parts = path.split("/");
  if (parts[1] === "api" && parts.length > 3) return withResource(parts[2] ?? "", parts.slice(3));
  if (parts[1] !== "apis" || parts.length <= 4) return undefined;
  return withResource(`${parts[2]}/${parts[3]}`, parts.slice(4));
}

/** `namespaces/x/pods` is inside a namespace; `namespaces/x` and `namespaces/x/status` are not. */
function withResource(apiVersion: string, rest: string[]): ResourcePath | undefined {
  if (rest[0] === "namespaces" && rest.length > 2 && !isNamespaceSubresource(rest[2])) {
    return withName({ apiVersion, namespace: decode(rest[1]), rest: rest.slice(2) });
  }
  return withName({ apiVersion, namespace: undefined, rest });
}

function isNamespaceSubresource(segment: string | undefined): boolean {
  return segment === "status" || segment === "finalize";
}

function withName(parts: {
  apiVersion: string;
  namespace: string | undefined;
  rest: string[];
}): ResourcePath | undefined {
  const [plural, name, subresource, ...beyond] = parts.rest;
  if (plural === undefined || plural === "" || beyond.length > 0) return undefined;
  return {
    apiVersion: parts.apiVersion,
    namespace: parts.namespace,
    plural,
    name: name === undefined || name === "" ? undefined : decode(name),
    subresource,
  };
}

function decode(segment: string | undefined): string {
  return segment?.includes("%") ? decodeURIComponent(segment) : (segment ?? "");
}
