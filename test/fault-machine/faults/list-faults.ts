import type { KubeAnswer } from "../../../src/contracts/kube-api.ts";
import type { Draw } from "../draw.ts";
import { type FaultKind, faultKind, withRule } from "../fault.ts";
import type { Stage } from "../stage.ts";

interface ListBody {
  readonly metadata: { readonly resourceVersion: string };
  readonly items: readonly { readonly metadata: { readonly name: string } }[];
}

interface Listed {
  readonly path: string;
  readonly storage: string;
}

/** What the controller keeps in memory. Its reads of single objects show the truth. */
const kept: readonly Listed[] = [
  { path: "/api/v1/nodes", storage: "nodes" },
  { path: "/apis/lastcall.dev/v1alpha1/departures", storage: "departures.lastcall.dev" },
  {
    path: "/apis/lastcall.dev/v1alpha1/departurepolicies",
    storage: "departurepolicies.lastcall.dev",
  },
];

/**
 * Lists that are answered 200 and do not show the present state: a server with an old cache, an
 * etcd that was restored from a backup, a proxy that filters. Sieve (OSDI 2022) calls the first
 * stale states; absence in a list is no evidence that an object is gone.
 */
export const listFaults: Readonly<Record<string, FaultKind>> = {
  "watch-partial": faultKind({
    says: "watches of one kind begin again with a list that lacks some objects, or all",
    draw: ({ draw }) => ({
      listed: drawListed(draw),
      lacks: draw.pick<"All" | "Odd">("All", "Odd"),
    }),
    begin: (stage, { listed, lacks }) => {
      const lists = answering(stage, listed, (body) => ({
        ...body,
        items: lacks === "All" ? [] : body.items.filter((_, index) => index % 2 === 0),
      }));
      beginAgain(stage, listed);
      return () => {
        lists();
        beginAgain(stage, listed);
      };
    },
  }),
  "watch-refused": faultKind({
    says: "lists and watches of one kind are refused: nothing of it is seen any more",
    draw: ({ draw }) => ({ listed: drawListed(draw), status: draw.pick(403, 500, 503) }),
    begin: (stage, { listed, status }) => {
      const message = `${listed.storage} cannot be listed`;
      const lists = withRule(stage.apiRules, (call) =>
        call.method === "GET" && call.path === listed.path
          ? { kind: "Answer" as const, status, message }
          : undefined,
      );
      const watches = withRule(stage.watchRules, ({ path }) =>
        path === listed.path ? { kind: "Broken" as const } : undefined,
      );
      stage.cluster.api.dropWatches(listed.path);
      return () => {
        lists();
        watches();
      };
    },
  }),
  "watch-stale": faultKind({
    says: "watches of one kind begin again with an older state, and stay there",
    draw: ({ draw }) => ({ listed: drawListed(draw), minutes: draw.pick(1, 5, 20, 60) }),
    begin: (stage, { listed, minutes }) => {
      const { items, version } = stage.past.at(
        listed.storage,
        stage.clock.now() - minutes * 60_000,
      );
      const lists = answering(stage, listed, (body) => ({
        ...body,
        metadata: { ...body.metadata, resourceVersion: version },
        items,
      }));
      const over = Promise.withResolvers<void>();
      const watches = withRule(stage.watchRules, ({ path }) =>
        path === listed.path ? { kind: "Held" as const, until: over.promise } : undefined,
      );
      beginAgain(stage, listed);
      return () => {
        lists();
        watches();
        over.resolve();
        beginAgain(stage, listed);
      };
    },
  }),
};

function drawListed(draw: Draw): Listed {
  return draw.pick(...kept);
}

function answering(
  stage: Stage,
  { path }: Listed,
  change: (body: ListBody) => ListBody,
): () => void {
  const alter = (answer: KubeAnswer): KubeAnswer =>
    answer.status === 200 ? { ...answer, body: change(answer.body as ListBody) } : answer;
  return withRule(stage.apiRules, (call) =>
    call.method === "GET" && call.path === path ? { kind: "Alters" as const, alter } : undefined,
  );
}

/** Whoever watches has to list again. */
function beginAgain(stage: Stage, { path }: Listed): void {
  stage.cluster.api.compactHistory();
  stage.cluster.api.dropWatches(path);
}
