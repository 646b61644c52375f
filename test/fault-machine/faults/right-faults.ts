import { type FaultKind, faultKind, withRule } from "../fault.ts";
import type { ApiCall } from "../surroundings.ts";

interface Right {
  readonly verb: string;
  readonly resource: string;
  readonly isMeant: (call: ApiCall) => boolean;
}

function right(verb: string, method: string, resource: string, path: RegExp): Right {
  return { verb, resource, isMeant: (call) => call.method === method && path.test(call.path) };
}

/** Those that a departure needs on its way. Lease and status have faults of their own. */
export const rights: readonly Right[] = [
  right("get", "GET", "nodes", /^\/api\/v1\/nodes\/[^/]+$/),
  right("patch", "PATCH", "nodes", /^\/api\/v1\/nodes\/[^/]+$/),
  right("patch", "PATCH", "nodes/status", /^\/api\/v1\/nodes\/[^/]+\/status$/),
  right("delete", "DELETE", "nodes", /^\/api\/v1\/nodes\/[^/]+$/),
  right("list", "GET", "pods", /^\/api\/v1\/pods$/),
  right("delete", "DELETE", "pods", /\/pods\/[^/]+$/),
  right("create", "POST", "pods/eviction", /\/eviction$/),
  right("list", "GET", "poddisruptionbudgets.policy", /\/poddisruptionbudgets$/),
  right("list", "GET", "volumeattachments.storage.k8s.io", /\/volumeattachments$/),
  right("get", "GET", "departures.lastcall.dev", /\/departures\/[^/]+$/),
  right("create", "POST", "departures.lastcall.dev", /\/departures$/),
  right("patch", "PATCH", "departures.lastcall.dev", /\/departures\/[^/]+$/),
  right("delete", "DELETE", "departures.lastcall.dev", /\/departures\/[^/]+$/),
  right("patch", "PATCH", "departurepolicies.lastcall.dev/status", /\/departurepolicies\/[^/]+\//),
  right("create", "POST", "events", /\/events$/),
];

/** What an administrator does to the controller's Role, or a chart of another version. */
export const rightFaults: Readonly<Record<string, FaultKind>> = {
  "right-removed": faultKind({
    says: "the controller has lost one right: one verb on one resource",
    draw: ({ draw }) => ({ right: draw.between(0, rights.length - 1) }),
    begin: (stage, { right: index }) => {
      const removed = rights[index];
      if (removed === undefined) return undefined;
      const { verb, resource, isMeant } = removed;
      const message = `${resource} is forbidden: User "lastcall" cannot ${verb} resource "${resource}"`;
      return withRule(stage.apiRules, (call) =>
        isMeant(call) && call.process.startsWith("controller")
          ? { kind: "Answer" as const, status: 403, message }
          : undefined,
      );
    },
  }),
};
