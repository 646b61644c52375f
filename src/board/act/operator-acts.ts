import type {
  DepartureStore,
  Fleet,
  FleetView,
  NodePods,
  OperatorResult,
  OperatorWrites,
} from "../../contracts/cluster.ts";
import { holdAnnotation, type NodeFacts } from "../../core/cluster/node.ts";
import { deadlineAfter, departStep } from "../../core/departure/decision.ts";
import { type Departure, isLive, isNoticed } from "../../core/departure/departure.ts";
import { planDrain } from "../../core/drain-plan/drain-plan.ts";
import { type DrainPlanReport, drainPlanReport } from "../../core/drain-plan/drain-plan-report.ts";
import { defaultPolicy, selectPolicy } from "../../core/policy/policy.ts";
import { between, type Instant, parseInstant } from "../../core/time/time.ts";
import { messageOf } from "../../errors.ts";
import {
  type ActAnswer,
  type ActPreview,
  type ActRequest,
  type BoardAct,
  briefInstant,
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
  readonly says: readonly string[];
  readonly refusal?: string | undefined;
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
      return { kind: "Refused", says: "It has changed since it was shown: review it again" };
    }
    const result = await finding.carryOut();
    if (result.kind === "Done") return { kind: "Done", says: finding.says[0] ?? "Done" };
    return { kind: "Refused", says: `Somebody else changed it first: ${result.found}` };
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
    if (node === undefined) return nothing(noNode(about.node));
    const seen = node.annotations[holdAnnotation] ?? null;
    const { name, uid } = node;
    const refusal =
      value === null && seen === null ? `${name} has no ${holdAnnotation} to remove` : undefined;
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

  #pastHold(name: string, value: string | null): string | undefined {
    if (value === null || value === "true") return undefined;
    const isPast = (parseInstant(value) ?? 0) <= this.#options.now();
    return isPast ? `Cannot hold ${name} until ${value}: that time has passed` : undefined;
  }

  async #depart(
    act: Extract<BoardAct, { kind: "Depart" }>,
    how?: "WithoutDrain",
  ): Promise<ActFinding> {
    const { fleet, store, now } = this.#options;
    const node = this.#nodeOf(act);
    if (node === undefined) return nothing(noNode(act.node));
    const departAt = act.at ?? now();
    const wantedAt = act.by ?? undefined;
    const past = [act.at, act.by].find((at) => at !== null && at < now());
    if (past !== undefined && past !== null) {
      return nothing(`${node.name} cannot leave at ${briefInstant(past)}: that time has passed`);
    }
    if (wantedAt !== undefined && wantedAt <= departAt) {
      return nothing(
        `${node.name} cannot leave by ${briefInstant(wantedAt)}: its departure starts at ${briefInstant(departAt)}`,
      );
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
      refusal:
        step.kind === "Leave"
          ? `${node.name} is already leaving: departure ${step.departure.name}, phase ${step.departure.status.phase}`
          : undefined,
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
        const found =
          result.kind === "Gone" ? "the departure no longer exists" : "it is being written";
        return { kind: "Changed", found };
      },
    };
  }

  /** What a hold does not keep away: the end of the machine's lifetime, and the deadline. */
  #limitSays(node: NodeFacts, value: string | null): readonly string[] {
    const policy = selectPolicy(node, this.#options.fleet.policies())?.policy;
    const { lifetime } = this.#endOf(node);
    // Nothing of a paused policy leaves as planned, at its deadline either.
    if (value === null || lifetime === undefined || policy?.paused) return [];
    const { deadlineAt, endsAt } = lifetime;
    const until = value === "true" ? undefined : parseInstant(value);
    if (until === undefined) {
      return [
        `The lifetime.max of ${node.name} by policy ${lifetime.policy} ends at ${briefInstant(endsAt)} even so: a machine with such a limit is terminated then, without a drain before`,
      ];
    }
    if (until <= deadlineAt) return [];
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
    const timeoutMs = deadlineAt === undefined ? drain.timeoutMs : between(departAt, deadlineAt);
    const rule = { ...drain, timeoutMs };
    return drainPlanReport(planDrain({ node, pods: here, budgets, rule, now: now() }));
  }

  #freeze({ policy: name, until }: Extract<BoardAct, { kind: "Freeze" }>): ActFinding {
    const { fleet, writes, now } = this.#options;
    const policy = fleet.policies().find((one) => one.name === name);
    if (policy === undefined) return nothing(`Policy ${name} does not exist or cannot be read`);
    const seen = policy.gates.freezeUntil ?? null;
    const isPast = until !== null && until <= now();
    return {
      says: [...freezeSays(name, { until, now: now(), seen }), ...this.#forcedSays(name, until)],
      refusal: isPast ? `Cannot freeze until ${briefInstant(until)}: that has passed` : undefined,
      seen: String(seen),
      carryOut: () => writes.freeze({ name, seen }, until),
    };
  }

  /** Whom a freeze does not keep. */
  #forcedSays(policy: string, until: Instant | null): readonly string[] {
    if (until === null) return [];
    const { fleet } = this.#options;
    const { nodes, policies } = fleet.view();
    const forced = nodes.flatMap((node) => {
      const own = selectPolicy(node, policies)?.policy;
      if (own?.name !== policy || own.paused) return [];
      // It leaves by that departure, whatever its deadline.
      if (fleet.departuresOf(node.uid).some((one) => isLeavingAnyway(one))) return [];
      const { deadlineAt } = this.#endOf(node).lifetime ?? {};
      return deadlineAt === undefined || deadlineAt >= until ? [] : { name: node.name, deadlineAt };
    });
    return forcedSays(forced.toSorted((a, b) => a.deadlineAt - b.deadlineAt));
  }

  #withdraw({ departure: name, uid }: Extract<BoardAct, { kind: "Withdraw" }>): ActFinding {
    const departure = this.#options.fleet.departure(uid);
    if (departure === undefined || departure.name !== name) {
      return nothing(`Departure ${name} no longer exists`);
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

function nothing(refusal: string): ActFinding {
  const carryOut = () => Promise.resolve({ kind: "Changed", found: refusal } as const);
  return { says: [], refusal, seen: "", carryOut };
}

function noNode(name: string): string {
  return `The node ${name} shown here no longer exists`;
}

/** Whether neither a hold nor a freeze concerns the departure. */
function isLeavingAnyway(departure: Departure): boolean {
  return isLive(departure) && (departure.cause === "Manual" || isNoticed(departure));
}
