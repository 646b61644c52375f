import { vi } from "vitest";
import type { KubeAnswer, KubeRequest } from "../../src/contracts/kube-api.ts";
import type { ModelWorld } from "./model-world.ts";

const verbs = { POST: "create", PUT: "update", PATCH: "patch", DELETE: "delete" } as const;

/**
 * From now on, the caller has only these permissions, written as `patch nodes`. Everybody may
 * review their own. RBAC decides before the API server knows of a dry run. Source of the text:
 * apiserver `pkg/endpoints/handlers/responsewriters/errors.go`.
 */
export function grantOnly(world: ModelWorld, granted: readonly string[]): void {
  const send = world.api.send.bind(world.api);
  vi.spyOn(world.api, "send").mockImplementation((request) => {
    const refusal = refusalOf(request, granted);
    return refusal === undefined ? send(request) : Promise.resolve(refusal);
  });
}

function refusalOf(
  { method, path }: KubeRequest,
  granted: readonly string[],
): KubeAnswer | undefined {
  const [, group = "", resource, name] =
    /^\/(?:api|apis\/([^/]+))\/[^/]+\/([^/]+)(?:\/([^/]+))?$/.exec(path) ?? [];
  if (resource === undefined || resource.startsWith("self")) return undefined;
  const verb = method === "GET" ? (name === undefined ? "list" : "get") : verbs[method];
  if (granted.includes(`${verb} ${resource}`)) return undefined;
  const subject = `${resource}${group && `.${group}`}${name === undefined ? "" : ` "${name}"`}`;
  const message = `${subject} is forbidden: User "jane" cannot ${verb} resource "${resource}" in API group "${group}" at the cluster scope`;
  const status = { kind: "Status", status: "Failure", reason: "Forbidden", code: 403 };
  return { status: 403, body: { ...status, message } };
}
