import type {
  DepartureStore,
  Fleet,
  FleetView,
  NodePods,
  OperatorResult,
  OperatorWrites,
} from "../../contracts/cluster.ts";
import { holdAnnotation, holdOf, type NodeFacts } from "../../core/cluster/node.ts";
import { deadlineAfter, departStep } from "../../core/departure/decision.ts";
import { type Departure, isLive, isNoticed } from "../../core/departure/departure.ts";
import { ruleWithin } from "../../core/drain/drain-time.ts";
import { planDrain } from "../../core/drain-plan/drain-plan.ts";
import { type DrainPlanReport, drainPlanReport } from "../../core/drain-plan/drain-plan-report.ts";
import { defaultPolicy, selectPolicy } from "../../core/policy/policy.ts";
import type { Sentence } from "../../core/reason/english.ts";
import { type Instant, instant, parseInstant } from "../../core/time/time.ts";
import { messageOf } from "../../errors.ts";
import {
  type ActAnswer,
  type ActPreview,
  type ActRequest,
  type BoardAct,
  type CommandPlace,
  commandOf,
  holdValue,
} from "./act.ts";
import {
  cannotWithdraw,
  departSays,
  forcedSays,
  freezeSays,
  heldDepartureSays,
  holdSays,
  replacedHoldSays,
  withdrawSays,
} from "./act-says.ts";
import { type NodeEnd, nodeEnd } from "./node-end.ts";

/** The part of a fleet on which acts depend: watched, or read once. */
export interface ActsFleet extends Pick<Fleet, "node" | "departure" | "departuresOf" | "policies"> {
  readonly view: () => Pick<FleetView, "nodes" | "departures" | "policies">;
}

export interface OperatorActsOptions {
  readonly fleet: ActsFleet;
  readonly pods: Pick<NodePods, "list" | "budgets">;
  readonly store: Pick<DepartureStore, "create" | "move">;
  readonly writes: OperatorWrites;
  readonly now: () => Instant;
  /** For the commands that the board shows for a terminal. */
  readonly place?: CommandPlace | undefined;
}

/** What is known about an act before it is shown or performed. */
interface ActFinding {
  readonly says: readonly Sentence[];
  readonly refusal?: Sentence | undefined;
  /** The state that it is based on; compared as text. */
  readonly seen: string;
  readonly drain?: DrainPlanReport | undefined;
  readonly carryOut: () => Promise<OperatorResult>;
}

/** The number of acts that are remembered, so that none is performed twice. */
const mostRemembered = 1000;

/**
 * Previews an act with the core's own rules, and performs it with the caller's permissions. An act
 * is performed once, however often its request arrives, and only if the state that it is based on
 * is still as it was shown.
 */
export class OperatorActs {
  readonly #options: OperatorActsOptions;
  readonly #done = new Map<string, Promise<ActAnswer>>();

  constructor(options: OperatorActsOptions) {
    this.#options = options;
  }

  async preview(act: BoardAct): Promise<ActPreview> {
    const { says, refusal = null, drain = null, seen } = await this.#look(act);
    return { says, refusal, drain, seen, command: commandOf(act, this.#options.place) };
  }

  perform(request: ActRequest): Promise<ActAnswer> {
    const before = this.#done.get(request.key);
    if (before !== undefined) return before;
    const answer = this.#perform(request).catch(
      (error: unknown): ActAnswer => ({ kind: "Refused", says: messageOf(error) }),
    );
    this.#done.set(request.key, answer);
    const [oldest] = this.#done.keys();
    if (this.#done.size > mostRemembered && oldest !== undefined) this.#done.delete(oldest);
    return answer;
  }

  async #perform({ act, seen }: ActRequest): Promise<ActAnswer> {
    const finding = await this.#look(act, "WithoutDrain");
    if (finding.refusal !== undefined) return { kind: "Refused", says: finding.refusal };
    if (finding.seen !== seen) {
      return { kind: "Refused", says: { says: "act.Changed" } };
    }
    const result = await finding.carryOut();
    if (result.kind === "Done")
      return { kind: "Done", says: finding.says[0] ?? { says: "act.Done" } };
    return { kind: "Refused", says: { says: "act.ChangedByOther", detail: result.found } };
  }

  async #look(act: BoardAct, how?: "WithoutDrain"): Promise<ActFinding> {
    switch (act.kind) {
      case "Hold":
        return this.#hold(act, holdValue(act.until));
      case "ReleaseHold":
        return this.#hold(act, null);
      case "Depart":
        return this.#depart(act, how);
      case "Freeze":
        return this.#freeze(act);
      case "Withdraw":
        return this.#withdraw(act);
    }
  }

  #hold(about: { readonly node: string; readonly uid: string }, value: string | null): ActFinding {
    const node = this.#nodeOf(about);
    if (node === undefined) return nothing({ says: "act.NodeGone", node: about.node });
    const seen = node.annotations[holdAnnotation] ?? null;
    const { name, uid } = node;
    const refusal: Sentence | undefined =
      value === null && seen === null
        ? { says: "act.NoMark", node: name, mark: holdAnnotation }
        : undefined;
    return {
      says: [
        ...holdSays(node, value),
        ...replacedHoldSays(node, value),
        ...heldDepartureSays(this.#options.fleet.departuresOf(uid), value),
        ...this.#limitSays(node, value),
      ],
      refusal: refusal ?? this.#pastHold(name, value),
      seen: JSON.stringify(seen),
      carryOut: () => this.#options.writes.hold({ name, uid, seen }, value),
    };
  }

  #pastHold(node: string, value: string | null): Sentence | undefined {
    if (value === null || value === "true") return undefined;
    const untilTime = parseInstant(value) ?? instant(0);
    const isPast = untilTime <= this.#options.now();
    return isPast ? { says: "act.PastHold", node, untilTime } : undefined;
  }

  async #depart(
    act: Extract<BoardAct, { kind: "Depart" }>,
    how?: "WithoutDrain",
  ): Promise<ActFinding> {
    const { fleet, store, now } = this.#options;
    const node = this.#nodeOf(act);
    if (node === undefined) return nothing({ says: "act.NodeGone", node: act.node });
    const departAt = act.at ?? now();
    const wantedAt = act.by ?? undefined;
    const past = [act.at, act.by].find((at) => at !== null && at < now());
    if (past !== undefined && past !== null) {
      return nothing({ says: "act.PastLeave", node: node.name, atTime: past });
    }
    if (wantedAt !== undefined && wantedAt <= departAt) {
      const times = { byTime: wantedAt, atTime: departAt };
      return nothing({ says: "act.EndsBeforeStart", node: node.name, ...times });
    }
    const policy = selectPolicy(node, fleet.policies())?.policy;
    const request = { departAt, deadlineAt: wantedAt, policy: policy?.name };
    const step = departStep(node, request, fleet.view().departures);
    const deadlineAt = deadlineAfter(step);
    const drain =
      how === undefined ? await this.#drainOf(node, { departAt, deadlineAt }) : undefined;
    return {
      says: departSays(node, {
        ...{ departAt, deadlineAt, policy, isNow: act.at === null, step },
        end: this.#endOf(node),
      }),
      refusal: step.kind === "Leave" ? alreadyLeaving(step.departure) : undefined,
      // A hold set or a request moved since the preview refuses the act: whoever confirms it has
      // to see that.
      seen: JSON.stringify([
        step.kind,
        step.kind === "Create" ? null : [step.departure.uid, ...requestIn(step.departure)],
        node.annotations[holdAnnotation] ?? null,
      ]),
      drain,
      carryOut: async () => {
        if (step.kind === "Leave") return { kind: "Done" };
        const result =
          step.kind === "Create"
            ? await store.create(step.made)
            : await store.move(step.departure, step.to);
        if (result.kind === "Done") return { kind: "Done" };
        const isGone = result.kind === "Gone";
        const says = isGone ? "change.DepartureGone" : "change.BeingWritten";
        return { kind: "Changed", found: { says } };
      },
    };
  }

  /** What a hold does not keep away: the end of the machine's lifetime, and the deadline. */
  #limitSays(node: NodeFacts, value: string | null): readonly Sentence[] {
    const policy = selectPolicy(node, this.#options.fleet.policies())?.policy;
    const { lifetime } = this.#endOf(node);
    // Nothing of a paused policy leaves as planned, at its deadline either.
    if (value === null || lifetime === undefined || policy?.paused) return [];
    const { deadlineAt, endsAt: endTime } = lifetime;
    const until = value === "true" ? undefined : parseInstant(value);
    if (until === undefined) {
      const about = { node: node.name, policy: lifetime.policy, endTime };
      return [{ says: "act.LifetimeAnyway", ...about }];
    }
    if (until <= deadlineAt || policy?.dryRun) return [];
    return forcedSays([{ name: node.name, deadlineAt }]);
  }

  #endOf(node: NodeFacts): NodeEnd {
    const { fleet } = this.#options;
    const { policies } = fleet.view();
    return nodeEnd(node, { policies, departures: fleet.departuresOf(node.uid) });
  }

  async #drainOf(
    node: NodeFacts,
    {
      departAt,
      deadlineAt,
    }: { readonly departAt: Instant; readonly deadlineAt?: Instant | undefined },
  ): Promise<DrainPlanReport> {
    const { fleet, pods, now } = this.#options;
    const [here, budgets] = await Promise.all([pods.list(node.name), pods.budgets()]);
    const { drain } = selectPolicy(node, fleet.policies())?.policy ?? defaultPolicy;
    // An instant set by a person limits the drain, but is not a notice: it forces no pod out.
    const rule = ruleWithin(drain, { beganAt: departAt, deadlineAt });
    return drainPlanReport(planDrain({ node, pods: here, budgets, rule, now: now() }));
  }

  #freeze({ policy: name, until }: Extract<BoardAct, { kind: "Freeze" }>): ActFinding {
    const { fleet, writes, now } = this.#options;
    const policy = fleet.policies().find((one) => one.name === name);
    if (policy === undefined) return nothing({ says: "act.NoPolicy", policy: name });
    const seen = policy.gates.freezeUntil ?? null;
    const isPast = until !== null && until <= now();
    return {
      says: [...freezeSays(name, { until, now: now(), seen }), ...this.#forcedSays(name, until)],
      refusal: isPast ? { says: "act.PastFreeze", untilTime: until } : undefined,
      seen: String(seen),
      carryOut: () => writes.freeze({ name, seen }, until),
    };
  }

  /** Whom a freeze does not keep. */
  #forcedSays(policy: string, until: Instant | null): readonly Sentence[] {
    if (until === null) return [];
    const { fleet } = this.#options;
    const { nodes, policies } = fleet.view();
    const forced = nodes.flatMap((node) => {
      const own = selectPolicy(node, policies)?.policy;
      if (own?.name !== policy || own.paused || own.dryRun) return [];
      if (holdOf(node).kind === "Always") return [];
      // It leaves by that departure, whatever its deadline, or is held with it.
      const made = fleet.departuresOf(node.uid).filter(isLive);
      if (made.some((one) => one.hold || isLeavingAnyway(one))) return [];
      const { deadlineAt } = this.#endOf(node).lifetime ?? {};
      return deadlineAt === undefined || deadlineAt >= until ? [] : { name: node.name, deadlineAt };
    });
    return forcedSays(forced.toSorted((a, b) => a.deadlineAt - b.deadlineAt));
  }

  #withdraw({ departure: name, uid }: Extract<BoardAct, { kind: "Withdraw" }>): ActFinding {
    const departure = this.#options.fleet.departure(uid);
    if (departure === undefined || departure.name !== name) {
      return nothing({ says: "act.DepartureGone", departure: name });
    }
    return {
      says: withdrawSays(departure),
      refusal: cannotWithdraw(departure),
      // The controller itself moves what it has planned.
      seen: JSON.stringify([
        departure.status.phase,
        departure.cause === "Manual" ? requestIn(departure) : null,
      ]),
      carryOut: () => this.#options.writes.withdraw({ name, uid }),
    };
  }

  #nodeOf({ node: name, uid }: { readonly node: string; readonly uid: string }) {
    const node = this.#options.fleet.node(name);
    return node?.uid === uid ? node : undefined;
  }
}

/** What a colleague may have changed about a departure since it was shown. */
function requestIn({ departAt, deadlineAt, hold }: Departure): readonly unknown[] {
  return [departAt, deadlineAt, hold];
}

function nothing(refusal: Sentence): ActFinding {
  const carryOut = () => Promise.resolve({ kind: "Changed", found: refusal } as const);
  return { says: [], refusal, seen: "", carryOut };
}

function alreadyLeaving({ node, name: departure, status }: Departure): Sentence {
  return { says: "act.AlreadyLeaving", node: node.name, departure, phase: status.phase };
}

/** Whether neither a hold nor a freeze concerns the departure. */
function isLeavingAnyway(departure: Departure): boolean {
  return isLive(departure) && (departure.cause === "Manual" || isNoticed(departure));
}
