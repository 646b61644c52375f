import type { NodeFacts } from "../../core/cluster/node.ts";
import { type PhaseResult, wasDrained } from "../../core/departure/ledger.ts";
import type { PlannedPod } from "../../core/drain-plan/drain-plan.ts";
import { planDrain } from "../../core/drain-plan/drain-plan.ts";
import { departureDeleted, machineLost, wholeIdentity } from "./machine-check.ts";
import { runSteps, type Step, type StepContext } from "./step.ts";

/**
 * A release that was asked for cannot be cancelled, so that its phase knows no such event; before
 * the request it is given up.
 */
const takenBack: PhaseResult = { ...departureDeleted, event: "GaveUp" };

/** How a drain may end whose machine goes all the same; after any other end it is kept. */
const mayGoAfter: ReadonlySet<PhaseResult["event"]> = new Set(["Drained", "CutShort", "NodeGone"]);

/**
 * A scheduler that had chosen the node before its cordon may bind a pod to it later, and a watch
 * may show that later still. So the node and its pods are read afresh just before its machine goes,
 * and once more when it is gone: the request that releases it and a binding are two servers'
 * affairs, and no look comes between them. A person may have taken the Departure back by then, too.
 */
export class LastLook {
  readonly #context: StepContext;
  /** How pods leave that are found. */
  readonly #draining: readonly Step[];
  /** Pods that a drain was over with, however it ended. */
  readonly #drained = new Set<string>();
  /** All that were there when the machine was released. */
  #there: ReadonlySet<string> | undefined;

  constructor(context: StepContext, draining: readonly Step[]) {
    this.#context = context;
    this.#draining = draining;
  }

  /**
   * What is on the node now leaves as the others did. Nobody else's machine may go in its place.
   */
  async before(signal: AbortSignal): Promise<"Clear" | "Waited" | PhaseResult> {
    const { executor, departure } = this.#context;
    const [node, isLive] = await Promise.all([this.#readNode(), executor.isLive(departure())]);
    if (!isLive) return takenBack;
    // Where the Node is gone, there are no pods, and the machine's own id tells whether it is the
    // one.
    if (node === undefined) return "Clear";
    const lost = this.#lost(node);
    if (lost !== undefined) return lost;
    const { there, toLeave } = await this.#podsOn(node);
    if (toLeave.every(({ uid }) => this.#drained.has(uid))) {
      this.#there = there;
      return "Clear";
    }
    const { memory, clock } = this.#context;
    memory.target = node;
    // Those that the drain before has left have had their time.
    const known = new Set([...this.#drained, ...(memory.drained?.staying ?? []).map(uidOf)]);
    // The controller before this one may have drained it.
    const isDrained = memory.drained !== undefined || wasDrained(departure().status);
    const isLate = isDrained && toLeave.some(({ uid }) => !known.has(uid));
    if (isLate) memory.lateSinceAt = clock.now();
    const result = await runSteps(this.#draining, this.#context, signal);
    if (result?.event === "Cancelled") return takenBack;
    if (result !== undefined && !mayGoAfter.has(result.event)) return result;
    for (const { uid } of toLeave) this.#drained.add(uid);
    return "Waited";
  }

  /** What was bound after the last look went with the machine: the ledger names it. */
  async after(): Promise<void> {
    const { telemetry, statusWriter } = this.#context;
    const before = this.#there;
    if (before === undefined) return;
    const departure = this.#context.departure();
    try {
      const node = (await this.#readNode()) ?? this.#context.node();
      if (node === undefined) return;
      const { toLeave } = await this.#podsOn(node);
      const late = toLeave.filter(({ uid }) => !before.has(uid));
      // The group may have been quicker: pods listed under the name may be its new machine's.
      const now = late.length > 0 ? await this.#readNode() : undefined;
      if (late.length === 0 || (now !== undefined && this.#lost(now) !== undefined)) return;
      const { status } = await statusWriter.leftBehind(departure, late);
      telemetry.leftBehind(departure, status);
    } catch (error) {
      telemetry.faulted("late-pods-not-looked-for", departure, error);
    }
  }

  #lost(node: NodeFacts): PhaseResult | undefined {
    const { departure, node: seen } = this.#context;
    return machineLost(wholeIdentity(departure().node, seen() ?? node), node);
  }

  #readNode(): Promise<NodeFacts | undefined> {
    const { departure, readNode } = this.#context;
    return readNode(departure().node.name);
  }

  async #podsOn(node: NodeFacts): Promise<{
    readonly there: ReadonlySet<string>;
    readonly toLeave: readonly PlannedPod[];
  }> {
    const { pods, clock, self, policy, memory } = this.#context;
    const listed = await pods.list(node.name);
    const rule = policy.drain;
    const scene = { budgets: [], rule, now: clock.now(), self, beganWith: memory.beganWith };
    const plan = planDrain({ node, pods: listed, ...scene });
    return { there: new Set(listed.map(({ uid }) => uid)), toLeave: plan.pods };
  }
}

function uidOf({ uid }: { readonly uid: string }): string {
  return uid;
}
