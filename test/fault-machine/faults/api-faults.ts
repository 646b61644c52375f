import { Draw } from "../draw.ts";
import { drawNode, type FaultKind, faultKind, withRule } from "../fault.ts";
import type { ApiCall, ApiEffect } from "../surroundings.ts";

/** What the API server, its admission and the network between do to requests. */
export const apiFaults: Readonly<Record<string, FaultKind>> = {
  "refuse-cordon": refusal("every patch of a Node", ({ method, path }) =>
    method === "PATCH" && path.startsWith("/api/v1/nodes/") ? nameAfter(path, "nodes") : undefined,
  ),
  "refuse-eviction": refusal("every eviction", ({ path }) =>
    path.endsWith("/eviction") ? "" : undefined,
  ),
  "refuse-pod-list": refusal("every list of pods", ({ method, path }) =>
    method === "GET" && path === "/api/v1/pods" ? "" : undefined,
  ),
  "refuse-budget-list": refusal("every list of budgets", ({ method, path }) =>
    method === "GET" && path.includes("poddisruptionbudgets") ? "" : undefined,
  ),
  "refuse-status": refusal("every status of a Departure", ({ method, path }) =>
    method === "PATCH" && /\/departures\/[^/]+\/status$/.test(path) ? "" : undefined,
  ),
  "refuse-departure": refusal("every new Departure", ({ method, path }) =>
    method === "POST" && path.endsWith("/departures") ? "" : undefined,
  ),
  "refuse-node-delete": refusal("every deletion of a Node", ({ method, path }) =>
    method === "DELETE" && path.startsWith("/api/v1/nodes/") ? nameAfter(path, "nodes") : undefined,
  ),
  "refuse-node-read": refusal("every read of one Node", ({ method, path }) =>
    method === "GET" && path.startsWith("/api/v1/nodes/") ? nameAfter(path, "nodes") : undefined,
  ),
  "refuse-lease": refusal("every write of the Lease", ({ method, path }) =>
    method !== "GET" && path.includes("/leases") ? "" : undefined,
  ),
  "refuse-events": refusal("every Event", ({ method, path }) =>
    method !== "GET" && path.includes("/events") ? "" : undefined,
  ),

  blackout: faultKind({
    says: "the API server cannot be reached",
    draw: () => ({}),
    begin: (stage) => {
      stage.cluster.api.dropWatches();
      const requests = withRule(stage.apiRules, () => ({ kind: "LostBefore" as const }));
      const watches = withRule(stage.watchRules, () => ({ kind: "Broken" as const }));
      return () => {
        requests();
        watches();
      };
    },
  }),
  flaky: faultKind({
    says: "some requests are lost, some are carried out and their answers lost, some are late",
    draw: ({ draw }) => ({ share: draw.pick(0.02, 0.1, 0.3), seed: draw.between(1, 1e6) }),
    begin: (stage, { share, seed }) => {
      const chance = new Draw(seed);
      return withRule(stage.apiRules, () => {
        if (!chance.chance(share)) return undefined;
        return chance.pick<ApiEffect>(
          { kind: "LostBefore" },
          { kind: "LostAfter" },
          { kind: "Answer", status: 500, message: "etcdserver: request timed out" },
          { kind: "Answer", status: 429, message: "too many requests" },
          { kind: "DelayBefore", ms: chance.pick(1000, 5000, 50_000) },
          { kind: "DelayAfter", ms: chance.pick(1000, 5000, 50_000) },
        );
      });
    },
  }),
  "lost-answers": faultKind({
    says: "every write is carried out, and its answer is lost",
    draw: () => ({}),
    begin: (stage) =>
      withRule(stage.apiRules, ({ method }) =>
        method === "GET" ? undefined : { kind: "LostAfter" as const },
      ),
  }),
  "late-writes": faultKind({
    says: "every write arrives late, some after the Lease has expired",
    draw: ({ draw }) => ({ ms: draw.pick(3000, 20_000, 60_000) }),
    begin: (stage, { ms }) =>
      withRule(stage.apiRules, ({ method, path }) =>
        method === "GET" || path.includes("/leases")
          ? undefined
          : { kind: "DelayBefore" as const, ms },
      ),
  }),
  "server-clock-off": faultKind({
    // What it stores keeps the true time: another API server has written that.
    says: "the API server that answers has a clock that is wrong",
    draw: ({ draw }) => ({ seconds: draw.pick(-3600, -300, 120, 300, 3600) }),
    begin: (stage, { seconds }) => {
      stage.serverOffMs += seconds * 1000;
      return () => {
        stage.serverOffMs -= seconds * 1000;
      };
    },
  }),
  throttled: faultKind({
    says: "the API server answers 429",
    draw: ({ draw }) => ({ share: draw.pick(0.5, 1), seed: draw.between(1, 1e6) }),
    begin: (stage, { share, seed }) => {
      const chance = new Draw(seed);
      const effect = { kind: "Answer" as const, status: 429, message: "too many requests" };
      return withRule(stage.apiRules, () => (chance.chance(share) ? effect : undefined));
    },
  }),

  "watch-late": faultKind({
    says: "watches of one kind deliver late",
    draw: ({ draw }) => ({ kind: watched(draw), ms: draw.pick(2000, 15_000, 90_000) }),
    begin: (stage, { kind, ms }) =>
      withRule(stage.watchRules, ({ path, event }) =>
        event !== undefined && path.includes(kind) ? { kind: "Late" as const, ms } : undefined,
      ),
  }),
  "watch-stalled": faultKind({
    says: "watches of one kind deliver nothing, and then everything",
    draw: ({ draw }) => ({ kind: watched(draw) }),
    begin: (stage, { kind }) => {
      const over = Promise.withResolvers<void>();
      const remove = withRule(stage.watchRules, ({ path, event }) =>
        event !== undefined && path.includes(kind)
          ? { kind: "Held" as const, until: over.promise }
          : undefined,
      );
      return () => {
        remove();
        over.resolve();
      };
    },
  }),
  "watch-expired": faultKind({
    says: "the history is compacted, and watches of one kind end with 410",
    draw: ({ draw }) => ({ kind: watched(draw) }),
    begin: (stage, { kind }) => {
      stage.cluster.api.compactHistory();
      stage.cluster.api.dropWatches(kind);
      return withRule(stage.watchRules, ({ path }) =>
        path.includes(kind) ? { kind: "Expired" as const } : undefined,
      );
    },
  }),
  "watch-blind": faultKind({
    says: "watches of one kind break, and what happens meanwhile is never seen in between",
    draw: ({ draw }) => ({ kind: watched(draw) }),
    begin: (stage, { kind }) => {
      stage.cluster.api.dropWatches(kind);
      const remove = withRule(stage.watchRules, ({ path }) =>
        path.includes(kind) ? { kind: "Broken" as const } : undefined,
      );
      return () => {
        stage.cluster.api.compactHistory();
        remove();
      };
    },
  }),
};

interface Refusal {
  readonly status: number;
  readonly message: string;
}

const refusals: readonly Refusal[] = [
  {
    status: 403,
    message: 'forbidden: ValidatingAdmissionPolicy "protected" with binding "all" denied request',
  },
  {
    status: 500,
    message:
      'Internal error occurred: failed calling webhook "guard.example.com": context deadline exceeded',
  },
  { status: 422, message: "spec: Invalid value: admission plugin changed it" },
  { status: 409, message: "the object has been modified; please apply your changes" },
  { status: 503, message: "the server is currently unable to handle the request" },
  { status: 404, message: "" },
];

/**
 * One verb of one resource is refused, for one machine's object or for all. `nameOf` returns the
 * name of the object that a request is about, "" if it has none, undefined if it is another verb.
 */
function refusal(says: string, nameOf: (call: ApiCall) => string | undefined): FaultKind {
  return faultKind({
    says: `${says} is refused`,
    draw: ({ draw, nodes }) => ({
      ...draw.pick(...refusals),
      only: draw.chance(0.4) ? drawNode({ draw, nodes }) : undefined,
    }),
    begin: (stage, { status, message, only }) => {
      const meant = only === undefined ? undefined : stage.machineName(only);
      return withRule(stage.apiRules, (call) => {
        const name = nameOf(call);
        const isMeant =
          name !== undefined && (meant === undefined || name === "" || name === meant);
        return isMeant ? { kind: "Answer" as const, status, message } : undefined;
      });
    },
  });
}

function nameAfter(path: string, plural: string): string {
  const parts = path.split("/");
  return parts[parts.indexOf(plural) + 1] ?? "";
}

function watched(draw: Draw): string {
  return draw.pick("/nodes", "/pods", "/departures", "/departurepolicies", "/leases");
}
