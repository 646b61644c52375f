import type { Fleet, NodePods } from "../contracts/cluster.ts";
import type { PageAnswer, PageRequest, PageRoutes, PageStream } from "../contracts/http-route.ts";
import type { KubeObject } from "../contracts/kube-api.ts";
import { answersByName, type HasReleaser } from "../core/policy/release-answer.ts";
import { inEnglish } from "../core/reason/english.ts";
import type { Instant } from "../core/time/time.ts";
import { messageOf } from "../errors.ts";
import { readAct, readActRequest } from "./act/act.ts";
import type { OperatorActs } from "./act/operator-acts.ts";
import type { BoardFeed } from "./board-feed.ts";
import { type DrainLog, nodePage } from "./node-page.ts";
import type { CountedOutcomes } from "./outcome/counted-outcomes.ts";
import { whatIfFacts } from "./picture.ts";
import type { StreamMessage } from "./stream.ts";

export interface BoardRoutesOptions {
  readonly feed: BoardFeed;
  readonly acts: OperatorActs;
  readonly fleet: Fleet;
  readonly pods: Pick<NodePods, "list" | "budgets">;
  readonly now: () => Instant;
  /** The DeparturePolicy objects as they were written. Rejects if they cannot be read. */
  readonly policyObjects: () => Promise<readonly KubeObject[]>;
  readonly hasReleaser: HasReleaser;
  readonly drainLog: DrainLog;
  /** The past outcomes counted by Prometheus; absent if there is none. */
  readonly counted?: (() => Promise<CountedOutcomes>) | undefined;
}

/** The routes that the board's page requests. */
export function boardRoutes(options: BoardRoutesOptions): PageRoutes {
  const { feed, acts } = options;
  return {
    get: {
      "/api/stream": ({ lastEventId, query }) =>
        boardStream(feed, lastEventId ?? query.get("after") ?? undefined),
      "/api/node": (request) => answerNode(request, options),
      "/api/what-if": () => answerWhatIf(options),
      "/api/outcomes": () => answerOutcomes(options),
    },
    post: {
      "/api/preview": async ({ body }) => {
        const act = readAct(body);
        return act === undefined ? noAct : { status: 200, json: await acts.preview(act) };
      },
      "/api/act": async ({ body }) => {
        const request = readActRequest(body);
        if (request === undefined) return noAct;
        const answer = await acts.perform(request);
        feed.refresh();
        return { status: answer.kind === "Done" ? 200 : 409, json: answer };
      },
    },
  };
}

const noAct: PageAnswer = {
  status: 400,
  json: { problem: "The request is not an action of the board" },
};

function boardStream(feed: BoardFeed, after: string | undefined): PageStream {
  return {
    type: "text/event-stream; charset=utf-8",
    open: (page) => feed.subscribe((message) => page.send(eventParts(message)), after),
  };
}

/** Lists the node's pods now: never those of the whole cluster. */
async function answerNode(
  { query }: PageRequest,
  { fleet, pods, now, drainLog }: BoardRoutesOptions,
): Promise<PageAnswer> {
  const name = query.get("name") ?? "";
  const found = await podsOn(name, { fleet, pods });
  const recordOf = (departure: string) => drainLog.of(departure);
  const page = nodePage(name, { ...found, view: fleet.view(), recordOf, now: now() });
  if (page === undefined)
    return { status: 404, json: { problem: inEnglish({ says: "act.NoNode", node: name }) } };
  return { status: 200, json: page };
}

/** Requested by a page that is about to compute a plan itself: it is never in the stream. */
async function answerWhatIf(options: BoardRoutesOptions): Promise<PageAnswer> {
  const { fleet, now, policyObjects, hasReleaser } = options;
  try {
    const policies = await policyObjects();
    const view = fleet.view();
    const releaseAnswers = answersByName(view.nodes, hasReleaser);
    return { status: 200, json: whatIfFacts({ view, policies, releaseAnswers, at: now() }) };
  } catch (error) {
    return { status: 502, json: { problem: messageOf(error) } };
  }
}

async function answerOutcomes({ counted }: BoardRoutesOptions): Promise<PageAnswer> {
  if (counted === undefined)
    return { status: 404, json: { problem: "No Prometheus is configured" } };
  try {
    return { status: 200, json: await counted() };
  } catch (error) {
    return { status: 502, json: { problem: messageOf(error) } };
  }
}

async function podsOn(name: string, { fleet, pods }: Pick<BoardRoutesOptions, "fleet" | "pods">) {
  if (fleet.node(name) === undefined) return {};
  try {
    const [here, budgets] = await Promise.all([pods.list(name), pods.budgets()]);
    return { pods: here, budgets };
  } catch (error) {
    return { problem: messageOf(error) };
  }
}

/** How many items of a list are serialized at once, some ten kilobytes. */
const itemsAtOnce = 32;

/**
 * A message in the format of server-sent events, part by part. The picture of thousands of nodes is
 * megabytes of text: in one piece it would stay in memory until the whole heap is collected.
 */
export function* eventParts(message: StreamMessage): Generator<string> {
  const id = "id" in message ? `id: ${message.id}\n` : "";
  yield `${id}data: `;
  yield* jsonParts(message);
  yield "\n\n";
}

/** The same text as `JSON.stringify` of plain data. */
export function* jsonParts(value: unknown): Generator<string> {
  if (Array.isArray(value)) yield* listParts(value);
  else if (typeof value === "object" && value !== null && isLarge(value)) yield* fieldParts(value);
  else yield JSON.stringify(value);
}

/** Whether it contains lists, at some depth. */
function isLarge(value: object): boolean {
  return Object.values(value).some(
    (inner) =>
      typeof inner === "object" &&
      inner !== null &&
      (Array.isArray(inner) ? inner.length > itemsAtOnce : isLarge(inner)),
  );
}

function* listParts(items: readonly unknown[]): Generator<string> {
  for (let from = 0; from < items.length; from += itemsAtOnce) {
    const some = JSON.stringify(items.slice(from, from + itemsAtOnce)).slice(1, -1);
    yield `${from === 0 ? "[" : ","}${some}`;
  }
  yield items.length === 0 ? "[]" : "]";
}

function* fieldParts(value: object): Generator<string> {
  let before = "{";
  for (const [key, inner] of Object.entries(value)) {
    if (inner === undefined) continue;
    yield `${before}${JSON.stringify(key)}:`;
    yield* jsonParts(inner);
    before = ",";
  }
  yield "}";
}
