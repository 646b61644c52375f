import type { Clock } from "../contracts/clock.ts";
import type { Fleet } from "../contracts/fleet.ts";
import { type Departure, isLive, isNoticed } from "../core/departure.ts";
import { statusAfter } from "../core/ledger.ts";
import type { NodeFacts } from "../core/node.ts";
import type { Policy } from "../core/policy.ts";
import { policyFor, reactionTo } from "../core/reaction.ts";
import { messageOf } from "../errors.ts";
import type { CaseBook } from "./case-book.ts";
import type { Executor } from "./executor.ts";
import type { NoticeDesk } from "./notice-desk.ts";

interface InterruptionTools {
  readonly fleet: Fleet;
  readonly cases: CaseBook;
  readonly executor: Executor;
  readonly desk: NoticeDesk;
  readonly clock: Clock;
}

/**
 * The fast side: a Departure that the cloud's word has made begins at once, in the turn in which
 * the watch shows it, whatever the rotation is doing. Cases under way hear of every change here.
 */
export function followInterruptions(tools: InterruptionTools, signal: AbortSignal): () => void {
  const { fleet, cases, desk } = tools;
  const look = (): void => {
    cases.observe();
    const { departures, policies } = fleet.view();
    for (const departure of departures) {
      if (!isLive(departure) || !isNoticed(departure)) continue;
      const node = fleet.node(departure.node.name);
      heed({ departure, node, policy: policyFor(departure, node, policies) }, tools, signal);
    }
    desk.lookAtMarks();
  };
  look();
  return fleet.onChange(look);
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
