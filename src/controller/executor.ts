import type { ActionRunner } from "../contracts/action-runner.ts";
import type {
  InstanceReleaser,
  LifecycleHooks,
  MachineState,
  ReleasedMachine,
  ReleaseRequest,
} from "../contracts/cloud.ts";
import type {
  ClusterPorts,
  LeaveOptions,
  MarkResult,
  RestartOptions,
  StoreResult,
} from "../contracts/cluster.ts";
import type { ClusterEvent, Telemetry } from "../contracts/telemetry.ts";
import type { NodeFacts } from "../core/cluster/node.ts";
import type { OwnerFacts, PodIdentity } from "../core/cluster/pod.ts";
import type { DepartureMove, NewDeparture } from "../core/departure/decision.ts";
import {
  type Departure,
  type DepartureStatus,
  hasFinalizer,
  isLive,
} from "../core/departure/departure.ts";
import type { ForceReason } from "../core/departure/drain-reason.ts";
import type { EvictionAnswer } from "../core/drain/drain-answer.ts";
import type { NewPlaceholder } from "../core/drain/placeholder-plan.ts";
import { isOvertaken, markOf } from "../core/notice/interruption.ts";
import { isUndoing, type NoticeUpdate, noticeUpdate, updateFrom } from "../core/notice/notice.ts";
import type { SoonStanding } from "../core/plan/plan-status.ts";
import type { ActionKind } from "../core/policy/action.ts";
import { noReleaser } from "../core/policy/release-answer.ts";
import type { Instant } from "../core/time/time.ts";
import { assert, type ErrorCode, LastcallError } from "../errors.ts";
import { fencedHooks, fencedRunner } from "./action/action-attempt.ts";

export interface ExecutorOptions {
  readonly ports: ClusterPorts;
  readonly telemetry: Telemetry;
  /** False as soon as another replica might lead. */
  readonly mayAct: () => boolean;
}

interface RefusedRestart {
  readonly pod: PodIdentity;
  readonly owner: OwnerFacts;
  readonly answer: Extract<EvictionAnswer, { kind: "Refused" }>;
}

/**
 * Performs all writes to the cluster and the cloud. Each act first checks that we still lead, and
 * identifies its target (uid, resourceVersion, machine id), so that it cannot hit the wrong node.
 * Every act is idempotent.
 */
export class Executor {
  readonly #ports: ClusterPorts;
  readonly #mayAct: () => boolean;
  readonly telemetry: Telemetry;

  constructor(options: ExecutorOptions) {
    this.#ports = options.ports;
    this.telemetry = options.telemetry;
    this.#mayAct = options.mayAct;
  }

  /** Creates a Departure. Does nothing if it exists. */
  async schedule(departure: NewDeparture): Promise<void> {
    this.#assertLeading();
    const result = await this.#ports.store.create(departure);
    if (result.kind !== "Done") return;
    const { name, namesTaken = [] } = departure;
    if (namesTaken.length > 0) {
      const taken = namesTaken.join(" ");
      this.telemetry.log.warn("departure-name-taken", {
        node: departure.node.name,
        taken,
        instead: name,
      });
    }
    this.telemetry.log.info("departure-scheduled", {
      node: departure.node.name,
      message: departure.message,
    });
    this.emit({
      type: departure.reason === "DeadlineBeatsWindow" ? "Warning" : "Normal",
      reason: departure.reason === "DeadlineBeatsWindow" ? departure.reason : "DepartureScheduled",
      message: departure.message,
      about: { kind: "Node", name: departure.node.name, uid: departure.node.uid },
    });
  }

  async move(departure: Departure, to: DepartureMove): Promise<void> {
    this.#assertLeading();
    await this.#ports.store.move(departure, to);
  }

  /** Applies a notice to a departure: its cause, and an earlier deadline. */
  async notice(departure: Departure, update: NoticeUpdate): Promise<void> {
    await this.#writeSpec(departure, (current) => {
      // The notice would be lost with the withdrawal: its reporter retries.
      if (current !== departure && isUndoing(current)) return undefined;
      const news = current === departure ? update : noticeUpdate(current, update);
      return news && this.#ports.store.notice(current, news);
    });
  }

  /** Withdraws the notice of a departure, unless another notice has changed it since. */
  async withdraw(departure: Departure, at: Instant): Promise<void> {
    const { source, deadlineAt } = departure;
    await this.#writeSpec(departure, (current) => {
      const isSame = current.source === source && current.deadlineAt === deadlineAt;
      const isStanding = current === departure || (isSame && !isUndoing(current));
      return isStanding ? this.#ports.store.withdraw(current, at) : undefined;
    });
  }

  /** Clears the planned instant of a departure that is under way by a notice. */
  async dropInstant(departure: Departure): Promise<void> {
    await this.#writeSpec(departure, (current) =>
      current === departure || isOvertaken(current)
        ? this.#ports.store.dropInstant(current)
        : undefined,
    );
  }

  /**
   * Writes, and on a conflict reads the departure again and retries, unless `write` finds nothing
   * left to write. `Ended`: nothing was written, because the departure has ended.
   */
  async #writeSpec(
    departure: Departure,
    write: (current: Departure) => Promise<StoreResult> | undefined,
  ): Promise<"Done" | "Ended"> {
    let current = departure;
    for (;;) {
      this.#assertLeading();
      const result = await write(current);
      if (result?.kind === "Gone") return "Ended";
      if (result?.kind !== "Conflict") return "Done";
      const fresh = await this.#ports.store.read(current.name);
      if (fresh.kind !== "Done" || fresh.departure.uid !== departure.uid) return "Ended";
      if (!isLive(fresh.departure)) return "Ended";
      current = fresh.departure;
    }
  }

  /**
   * Hands a notice over to the departure that owns the node. `Orphan`: no such departure exists,
   * and the mark is left over. Throws a retryable `CONFLICT` while that departure is being
   * withdrawn, because the notice would be withdrawn with it.
   */
  async handOver(notice: Departure, owner: string): Promise<"Done" | "Orphan"> {
    this.#assertLeading();
    const found = await this.#ports.store.read(owner);
    if (found.kind !== "Done" || !isLive(found.departure)) return "Orphan";
    if (found.departure.node.uid !== notice.node.uid) return "Orphan";
    const told = updateFrom(notice);
    const end = await this.#writeSpec(found.departure, (current) => {
      if (isUndoing(current)) {
        const problem = `the Departure ${owner} is being withdrawn, retrying once it has ended`;
        throw new LastcallError("CONFLICT", `Cannot hand over the notice: ${problem}`);
      }
      const update = told && noticeUpdate(current, told);
      return update && this.#ports.store.notice(current, update);
    });
    return end === "Ended" ? "Orphan" : "Done";
  }

  /** Whether a departure still exists and has not ended, by a read of the API server. */
  async isLive(departure: Departure): Promise<boolean> {
    const found = await this.#ports.store.read(departure.name);
    if (found.kind !== "Done" || found.departure.uid !== departure.uid) return false;
    return isLive(found.departure) && found.departure.deletionAt === undefined;
  }

  /**
   * Keeps the Departure from vanishing while it is under way. Returns it as written; undefined if
   * it is gone, or being deleted, when no finalizer can be added.
   */
  async guard(departure: Departure): Promise<Departure | undefined> {
    let guarded: Departure | undefined = departure;
    const end = await this.#writeSpec(departure, async (current) => {
      guarded = current.deletionAt === undefined ? current : undefined;
      if (guarded === undefined || hasFinalizer(current)) return { kind: "Done", departure };
      const result = await this.#ports.store.finalize(current, "Add");
      if (result.kind === "Done") guarded = result.departure;
      return result;
    });
    return end === "Done" ? guarded : undefined;
  }

  /** Lets go of a departure that has ended: a deleted one then vanishes. */
  async removeFinalizer(departure: Departure): Promise<void> {
    this.#assertLeading();
    assert(departure.status.phase === "Ended", "only an ended departure has nothing to undo");
    await this.#ports.store.finalize(departure, "Remove");
  }

  /** Deletes a Departure that ended long ago. */
  async forget(departure: Departure): Promise<void> {
    this.#assertLeading();
    assert(departure.status.phase === "Ended", "only an ended departure is forgotten");
    await this.#ports.store.remove(departure);
  }

  /**
   * Writes the status. `change` is evaluated at once, again when the request is sent (which may be
   * later in a burst), and after a conflict on the departure as read then. It returns undefined if
   * there is nothing to write. The result is undefined if the Departure is gone.
   */
  async record(
    departure: Departure,
    change: (fresh: Departure) => DepartureStatus | undefined,
    hurry?: AbortSignal,
  ): Promise<Departure | undefined> {
    let current = departure;
    for (;;) {
      this.#assertLeading();
      const fresh = current;
      if (change(fresh) === undefined) return fresh;
      const status = this.#fenced(() => change(fresh) ?? fresh.status);
      const result = await this.#ports.store.record(fresh, { status, hurry });
      if (result.kind === "Done") return result.departure;
      if (result.kind === "Gone") return undefined;
      const read = await this.#ports.store.read(current.name);
      if (read.kind !== "Done" || read.departure.uid !== departure.uid) return undefined;
      current = read.departure;
    }
  }

  /** `seen` is the node as the watch shows it, which saves a read if it is current. */
  async cordon(departure: Departure, seen: NodeFacts | undefined): Promise<MarkResult> {
    this.#assertLeading();
    return this.#ports.marks.cordon(departure.node, { ...markOf(departure), seen });
  }

  /** Refreshes existing marks after a change of cause or deadline. */
  async renewMarks(departure: Departure): Promise<void> {
    this.#assertLeading();
    await this.#ports.marks.cordon(departure.node, { ...markOf(departure), renews: true });
  }

  async uncordon(target: {
    readonly node: { readonly name: string; readonly uid: string };
    readonly departure: string;
  }): Promise<MarkResult> {
    this.#assertLeading();
    return this.#ports.marks.uncordon({
      name: target.node.name,
      uid: target.node.uid,
      departure: target.departure,
    });
  }

  async evict(pod: PodIdentity, options: LeaveOptions): Promise<EvictionAnswer> {
    this.#assertLeading();
    const graceSeconds = this.#fenced(options.graceSeconds);
    const answer = await this.#ports.pods.evict(pod, { ...options, graceSeconds });
    this.telemetry.metrics.count("lastcall_evictions_total", { result: answer.kind });
    return answer;
  }

  /** Checks again that we lead when a queued request is sent, which may be much later. */
  #fenced<T>(atTurn: () => T): () => T {
    return () => {
      this.#assertLeading();
      return atTurn();
    };
  }

  /** Deletes a pod regardless of its budget, which is always counted and logged. */
  async remove(
    pod: PodIdentity,
    { reason, ...options }: LeaveOptions & { readonly reason: ForceReason },
  ): Promise<EvictionAnswer> {
    this.#assertLeading();
    const { dueAt } = options;
    const problem = await this.#ports.pods.markDisrupted(pod, { reason, dueAt });
    if (problem !== undefined) {
      const { namespace, name } = pod;
      this.telemetry.log.warn("disruption-not-marked", { namespace, pod: name, error: problem });
    }
    const graceSeconds = this.#fenced(options.graceSeconds);
    const answer = await this.#ports.pods.remove(pod, { ...options, graceSeconds });
    this.telemetry.metrics.count("lastcall_pods_forced_total", { reason });
    return answer;
  }

  async restartOwner(
    pod: PodIdentity,
    owner: OwnerFacts,
    options: RestartOptions,
  ): Promise<EvictionAnswer> {
    this.#assertLeading();
    const onTurn = this.#fenced(options.onTurn);
    const answer = await this.#ports.pods.restartOwner(pod, owner, { ...options, onTurn });
    if (answer.kind === "Refused") this.#restartRefused({ pod, owner, answer });
    return answer;
  }

  /** Logs a refused restart, which is rare: each pod requests at most one per drain. */
  #restartRefused({ pod, owner, answer }: RefusedRestart): void {
    const code: ErrorCode = answer.status === 403 ? "RIGHT_MISSING" : "API_REFUSED";
    this.telemetry.metrics.count("lastcall_errors_total", { code });
    this.telemetry.log.warn("restart-refused", {
      code,
      pod: `${pod.namespace}/${pod.name}`,
      owner: `${owner.kind} ${owner.name}`,
      error: answer.message,
      ...(code === "RIGHT_MISSING" && { wanted: "the role of deploy/restart-owner" }),
    });
  }

  /** Creates a placeholder that reserves capacity for a pod that will leave. */
  async createPlaceholder(placeholder: NewPlaceholder): Promise<void> {
    this.#assertLeading();
    await this.#ports.placeholders.create(placeholder);
  }

  /** Deletes a Failed pod that an earlier machine of the node left behind. */
  removeFailed(pod: PodIdentity): Promise<EvictionAnswer> {
    this.#assertLeading();
    const graceSeconds = this.#fenced(() => undefined);
    return this.#ports.pods.remove(pod, { graceSeconds });
  }

  async removePlaceholder(name: string): Promise<void> {
    this.#assertLeading();
    await this.#ports.placeholders.remove(name);
  }

  /** The releaser that checks a machine; undefined if there is none. Read-only. */
  checkerFor(machine: ReleasedMachine): Pick<InstanceReleaser, "check"> | undefined {
    return this.#ports.releaserFor(machine);
  }

  /** Looks up the machine in its cloud or at its owner. Read-only. */
  describe(machine: ReleasedMachine, signal: AbortSignal): Promise<MachineState> {
    return this.#releaser(machine).describe(machine.providerID, signal);
  }

  async release(
    departure: Departure,
    how: Omit<ReleaseRequest, "providerID" | "requestId">,
    signal: AbortSignal,
  ): ReturnType<InstanceReleaser["release"]> {
    this.#assertLeading();
    const { providerID } = departure.node;
    assert(providerID !== undefined, "a machine is released only where its providerID is known");
    const lastLook = () => how.lastLook().finally(() => this.#assertLeading());
    const request = { ...how, lastLook, providerID, requestId: departure.uid };
    return this.#releaser(request).release(request, signal);
  }

  /** The lifecycle hooks, used only while we lead; undefined if none are configured. */
  get hooks(): LifecycleHooks | undefined {
    const { hooks } = this.#ports;
    if (hooks === undefined) return undefined;
    const assertMayAct = () => this.#assertLeading();
    return fencedHooks(hooks, { telemetry: this.telemetry, assertMayAct });
  }

  /** Deletes the Node object of a released machine; uncordons it if a new machine has it. */
  async removeNode(departure: Departure): Promise<void> {
    this.#assertLeading();
    const result = await this.#ports.marks.remove(departure.node);
    if (result.kind !== "Mismatch") return;
    await this.uncordon({ node: departure.node, departure: departure.name });
  }

  /** Adds or removes the taint that makes the scheduler prefer other nodes. */
  async markSoon(node: NodeFacts, to: SoonStanding): Promise<void> {
    this.#assertLeading();
    await this.#ports.marks.markSoon(node, to);
  }

  /**
   * Uncordons a node whose departure no longer exists. Reads the departure first, because the watch
   * may not show one that was just created.
   */
  async clearOrphan(node: NodeFacts, departure: string): Promise<void> {
    const found = await this.#ports.store.read(departure);
    const live = found.kind === "Done" && isLive(found.departure);
    if (live && found.departure.node.uid === node.uid) return;
    await this.uncordon({ node, departure });
    this.telemetry.log.warn("orphaned-cordon-cleared", { node: node.name, departure });
  }

  /** The runner of a kind, fenced by our lead; undefined if this process has none. */
  async actionRunner(kind: ActionKind): Promise<ActionRunner | undefined> {
    const runner = await this.#ports.actionPorts?.runners(kind);
    return runner && fencedRunner(runner, () => this.#assertLeading());
  }

  emit(event: ClusterEvent): void {
    this.telemetry.events.emit(event);
  }

  #releaser(machine: ReleasedMachine): InstanceReleaser {
    const releaser = this.#ports.releaserFor(machine);
    if (releaser !== undefined) return releaser;
    const problem = `Cannot release a machine: ${noReleaser(machine.providerID)}`;
    throw new LastcallError("CLOUD_REFUSED", problem);
  }

  #assertLeading(): void {
    if (!this.#mayAct()) {
      throw new LastcallError(
        "LEASE_LOST",
        "Cannot act: the lease may have been lost, only the leader acts",
      );
    }
  }
}
