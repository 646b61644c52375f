import type { Clock } from "../contracts/clock.ts";
import type { Fleet } from "../contracts/fleet.ts";
import { type Departure, isLive, isVoluntary } from "../core/departure.ts";
import { statusAfter } from "../core/ledger.ts";
import type { NodeFacts } from "../core/node.ts";
import { callsOfMarks, type MarkCall } from "../core/node-notice.ts";
import type { Policy } from "../core/policy.ts";
import { policyFor, reactionTo } from "../core/reaction.ts";
import { messageOf } from "../errors.ts";
import type { CaseBook } from "./case-book.ts";
import type { Executor } from "./executor.ts";

interface InterruptionTools {
  readonly fleet: Fleet;
  readonly cases: CaseBook;
  readonly executor: Executor;
  readonly clock: Clock;
}

/**
 * The fast side: a Departure that the cloud's word has made begins at once, in the turn in which
 * the watch shows it, whatever the rotation is doing. Cases under way hear of every change here.
 */
export function followInterruptions(tools: InterruptionTools, signal: AbortSignal): () => void {
  const { fleet, cases } = tools;
  const asked = new Set<string>();
  const look = (): void => {
    const view = fleet.view();
    const nodes = new Map(view.nodes.map((node) => [node.name, node]));
    cases.observe(view.departures, nodes);
    for (const departure of view.departures) {
      if (!isLive(departure) || !isNoticed(departure)) continue;
      const node = nodes.get(departure.node.name);
      heed({ departure, node, policy: policyFor(departure, node, view.policies) }, tools, signal);
    }
    takeDown(tools, asked);
  };
  look();
  return fleet.onChange(look);
}

/**
 * Where no agent speaks, the platform's own marks on nodes are the notice. `asked` holds what was
 * written and is not seen yet: of a hundred nodes that end together each is asked for once.
 */
function takeDown({ fleet, executor, clock }: InterruptionTools, asked: Set<string>): void {
  const view = fleet.view();
  if (asked.size > 0) forgetSeen(asked, view.departures);
  for (const call of callsOfMarks({ ...view, at: clock.now() })) {
    const { key, write } = deedOf(call, executor);
    if (asked.has(key)) continue;
    asked.add(key);
    write().catch((error: unknown) => {
      asked.delete(key);
      executor.voice.log.warn("act-failed", { error: messageOf(error) });
    });
  }
}

interface Deed {
  /** The name to be seen, or the version of the one that is to change. */
  readonly key: string;
  readonly write: () => Promise<void>;
}

function deedOf(call: MarkCall, executor: Executor): Deed {
  if (call.kind === "Make") {
    return { key: call.order.name, write: () => executor.schedule(call.order) };
  }
  const { departure, word } = call;
  return { key: versionOf(departure), write: () => executor.notice(departure, word) };
}

function forgetSeen(asked: Set<string>, departures: readonly Departure[]): void {
  const versions = new Set(departures.map(versionOf));
  const names = new Set(departures.map(({ name }) => name));
  for (const key of asked) {
    const isVersion = key.includes("@");
    if (isVersion ? !versions.has(key) : names.has(key)) asked.delete(key);
  }
}

/** No name holds an `@`. */
function versionOf({ name, resourceVersion }: Departure): string {
  return `${name}@${resourceVersion}`;
}

function isNoticed(departure: Departure): boolean {
  return departure.noticedAt !== undefined || !isVoluntary(departure.cause);
}

function heed(
  notice: {
    readonly departure: Departure;
    readonly node: NodeFacts | undefined;
    readonly policy: Policy;
  },
  { cases, executor, clock }: InterruptionTools,
  signal: AbortSignal,
): void {
  const { departure, policy } = notice;
  const fresh = departure.status.phase === "Scheduled" || departure.status.phase === "Held";
  const reaction = reactionTo(departure, policy);
  const isOff = departure.withdrawnAt !== undefined;
  if (fresh && (isOff || reaction === "Ignore" || reaction === "Notify")) {
    const why = isOff
      ? ({ event: "Withdrawn", reason: "NoticeWithdrawn" } as const)
      : ({ event: "Cancelled", reason: "NoticeIgnored" } as const);
    const ended = { ...why, at: clock.now() };
    executor
      .record(departure, (now) => statusAfter({ ...now, policy: policy.name }, ended))
      .catch((error: unknown) =>
        executor.voice.log.warn("act-failed", { error: messageOf(error) }),
      );
    return;
  }
  const first = { event: "Noticed", reason: "Noticed" } as const;
  cases.open(departure, { policy, signal, ...(fresh ? { first } : {}) });
}
