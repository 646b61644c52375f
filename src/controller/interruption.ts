import type { Clock } from "../contracts/clock.ts";
import type { Fleet } from "../contracts/fleet.ts";
import { type Departure, isLive, isNoticed } from "../core/departure.ts";
import { type Happening, statusAfter } from "../core/ledger.ts";
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
  if (whyNot(departure, policy) === undefined) {
    const first = { event: "Noticed", reason: "Noticed" } as const;
    cases.open(departure, { policy, signal, ...(isToBegin(departure) ? { first } : {}) });
    return;
  }
  const at = clock.now();
  executor
    .record(departure, (now) => {
      // Judged anew where somebody wrote in between: it may be an interruption's by now.
      const why = whyNot(now, policy);
      return why && statusAfter({ ...now, policy: policy.name }, { ...why, at });
    })
    .catch((error: unknown) => executor.voice.log.warn("act-failed", { error: messageOf(error) }));
}

function isToBegin({ status }: Departure): boolean {
  return status.phase === "Scheduled" || status.phase === "Held";
}

/** Why a departure ends before it has begun; undefined where it begins, or has. */
function whyNot(departure: Departure, policy: Policy): Omit<Happening, "at"> | undefined {
  if (!isToBegin(departure)) return undefined;
  if (departure.withdrawnAt !== undefined) {
    return { event: "Withdrawn", reason: "NoticeWithdrawn" };
  }
  const reaction = reactionTo(departure, policy);
  const isLeft = reaction === "Ignore" || reaction === "Notify";
  return isLeft ? { event: "Cancelled", reason: "NoticeIgnored" } : undefined;
}
