import type { ActionRunner } from "../contracts/action-runner.ts";
import type {
  InstanceReleaser,
  MachineState,
  ReleasedMachine,
  ReleaseRequest,
} from "../contracts/cloud/instance-releaser.ts";
import type { LifecycleHooks } from "../contracts/cloud/lifecycle-hooks.ts";
import type { StoreResult } from "../contracts/departure-store.ts";
import type { MarkResult } from "../contracts/node-marks.ts";
import type { LeaveOptions, RestartOptions } from "../contracts/node-pods.ts";
import type { ClusterEvent, Telemetry } from "../contracts/telemetry.ts";
import type { NodeFacts } from "../core/cluster/node.ts";
import type { OwnerFacts, PodIdentity } from "../core/cluster/pod.ts";
import type { NewDeparture } from "../core/departure/decision.ts";
import type { DepartureMove } from "../core/departure/depart-request.ts";
import { type Departure, type DepartureStatus, isLive } from "../core/departure/departure.ts";
import type { ForceReason } from "../core/departure/drain-reason.ts";
import type { EvictionAnswer } from "../core/drain/drain-answer.ts";
import type { NewPlaceholder } from "../core/drain/placeholder-plan.ts";
import { isOvertaken, markOf } from "../core/notice/interruption.ts";
import {
  isUndoing,
  type NoticeUpdate,
  noticeUpdate,
  updateFrom,
} from "../core/notice/notice-merge.ts";
import type { SoonStanding } from "../core/plan/departing-soon.ts";
import type { ActionKind } from "../core/policy/action.ts";
import { noReleaser } from "../core/policy/release-answer.ts";
import type { Instant } from "../core/time/time.ts";
import { assert, type ErrorCode, LastcallError } from "../errors.ts";
import { fencedRunner } from "./action/action-attempt.ts";
import type { ClusterPorts } from "./cluster-ports.ts";
import { fencedHooks } from "./notice/fenced-hooks.ts";

export interface ExecutorOptions {
  readonly ports: ClusterPorts;
  readonly telemetry: Telemetry;
  /** False as soon as another replica may lead. */
  readonly mayAct: () => boolean;
}

interface RefusedRestart {
  readonly pod: PodIdentity;
  readonly owner: OwnerFacts;
  readonly answer: Extract<EvictionAnswer, { kind: "Refused" }>;
}

/**
 * The only file that acts upon the cluster and the cloud. Each act looks first whether we still
 * lead, and each names whom it means (uid, resourceVersion, machine id), so that the wrong node
 * cannot be met. Every act is idempotent.
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

  /** Creates a Departure; one that is there already is left as it is. */
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

  /** Forces a departure, or brings its deadline forward. */
  async notice(departure: Departure, update: NoticeUpdate): Promise<void> {
    await this.#writeSpec(departure, (current) => {
      // The notice would be lost with what is being withdrawn: its reporter tries again.
      if (current !== departure && isUndoing(current)) return undefined;
      const news = current === departure ? update : noticeUpdate(current, update);
      return news && this.#ports.store.notice(current, news);
    });
  }

  /** Withdraws the notice of a departure. One that another notice has changed by now stays. */
  async withdraw(departure: Departure, at: Instant): Promise<void> {
    const { source, deadlineAt } = departure;
    await this.#writeSpec(departure, (current) => {
      const isSame = current.source === source && current.deadlineAt === deadlineAt;
      const isStanding = current === departure || (isSame && !isUndoing(current));
      return isStanding ? this.#ports.store.withdraw(current, at) : undefined;
    });
  }

  /** Takes away the instant for which a departure was planned, once it is under way by a notice. */
  async dropInstant(departure: Departure): Promise<void> {
    await this.#writeSpec(departure, (current) =>
      current === departure || isOvertaken(current)
        ? this.#ports.store.dropInstant(current)
        : undefined,
    );
  }

  /**
   * Writes until nobody else has written in between. On a conflict the departure is read again; it
   * is left alone where it has ended, and where `write` finds nothing to write any more.
   */
  async #writeSpec(
    departure: Departure,
    write: (current: Departure) => Promise<StoreResult> | undefined,
  ): Promise<void> {
    let current = departure;
    for (;;) {
      this.#assertLeading();
      const result = await write(current);
      if (result?.kind !== "Conflict") return;
      const fresh = await this.#ports.store.read(current.name);
      if (fresh.kind !== "Done" || fresh.departure.uid !== departure.uid) return;
      if (!isLive(fresh.departure)) return;
      current = fresh.departure;
    }
  }

  /**
   * Gives a notice to the departure that has its node. "Orphan": none has, the mark is left over.
   * Throws a retryable `CONFLICT` while that one is withdrawn: the notice would be, too.
   */
  async handOver(notice: Departure, owner: string): Promise<"Done" | "Orphan"> {
    this.#assertLeading();
    const found = await this.#ports.store.read(owner);
    if (found.kind !== "Done" || !isLive(found.departure)) return "Orphan";
    if (found.departure.node.uid !== notice.node.uid) return "Orphan";
    if (isUndoing(found.departure)) {
      const problem = `the Departure ${owner} is being withdrawn, expected its end first`;
      throw new LastcallError("CONFLICT", `Cannot hand the notice over: ${problem}`);
    }
    const told = updateFrom(notice);
    const update = told && noticeUpdate(found.departure, told);
    if (update !== undefined) await this.notice(found.departure, update);
    return "Done";
  }

  /** Whether a departure is still to be carried out, by a fresh look at it. */
  async isLive(departure: Departure): Promise<boolean> {
    const found = await this.#ports.store.read(departure.name);
    if (found.kind !== "Done" || found.departure.uid !== departure.uid) return false;
    return isLive(found.departure) && found.departure.deletionAt === undefined;
  }

  /** Deletes the record of a departure that ended long ago. */
  async forget(departure: Departure): Promise<void> {
    this.#assertLeading();
    assert(departure.status.phase === "Ended", "only an ended departure is forgotten");
    await this.#ports.store.remove(departure);
  }

  /**
   * Writes the status. `change` is asked at first, again as the write goes out, which in a rush is
   * a while later, and after a conflict of the departure as it is then; it answers undefined when
   * that leaves nothing to write. Undefined comes back too when the Departure is gone.
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

  /** `seen`: the node as the watch shows it, which spares a look where it is still so. */
  async cordon(departure: Departure, seen: NodeFacts | undefined): Promise<MarkResult> {
    this.#assertLeading();
    return this.#ports.marks.cordon(departure.node, { ...markOf(departure), seen });
  }

  /** Writes the marks again where they stand: cause or deadline are others now. */
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

  /** What waits for its turn may go out long after it was asked for: it looks again then. */
  #fenced<T>(atTurn: () => T): () => T {
    return () => {
      this.#assertLeading();
      return atTurn();
    };
  }

  /** Deletes a pod past its budget; counted and said, since it is never ordinary. */
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

  /** It is asked for once a pod and drain, so that each time is worth a line. */
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

  /** A pod of our own that keeps room for one that will leave. */
  async createPlaceholder(placeholder: NewPlaceholder): Promise<void> {
    this.#assertLeading();
    await this.#ports.placeholders.create(placeholder);
  }

  /** A pod that has ended with a machine before this one; its containers are gone long since. */
  removeFailed(pod: PodIdentity): Promise<EvictionAnswer> {
    this.#assertLeading();
    const graceSeconds = this.#fenced(() => undefined);
    return this.#ports.pods.remove(pod, { graceSeconds });
  }

  async removePlaceholder(name: string): Promise<void> {
    this.#assertLeading();
    await this.#ports.placeholders.remove(name);
  }

  /** Whom to ask about such machines; undefined where there is no cloud. Only looks. */
  checkerFor(machine: ReleasedMachine): Pick<InstanceReleaser, "check"> | undefined {
    return this.#ports.releaserFor(machine);
  }

  /** The machine as its cloud, or its owner, knows it now. Only looks. */
  describe(machine: ReleasedMachine, signal: AbortSignal): Promise<MachineState> {
    return this.#releaser(machine).describe(machine.providerID, signal);
  }

  async release(
    departure: Departure,
    how: Pick<ReleaseRequest, "mode" | "machineId" | "lastLook">,
    signal: AbortSignal,
  ): ReturnType<InstanceReleaser["release"]> {
    this.#assertLeading();
    const { providerID } = departure.node;
    assert(providerID !== undefined, "a machine is released only where its providerID is known");
    const lastLook = () => how.lastLook().finally(() => this.#assertLeading());
    const request = { ...how, lastLook, providerID, requestId: departure.uid };
    return this.#releaser(request).release(request, signal);
  }

  /** The groups that wait, told only while we lead; undefined where none is told anything. */
  get hooks(): LifecycleHooks | undefined {
    const { hooks } = this.#ports;
    if (hooks === undefined) return undefined;
    const assertMayAct = () => this.#assertLeading();
    return fencedHooks(hooks, { telemetry: this.telemetry, assertMayAct });
  }

  /** After its machine: removes the Node object; one that a new machine has is uncordoned. */
  async removeNode(departure: Departure): Promise<void> {
    this.#assertLeading();
    const result = await this.#ports.marks.remove(departure.node);
    if (result.kind !== "Mismatch") return;
    await this.uncordon({ node: departure.node, departure: departure.name });
  }

  /** The scheduler is to prefer other nodes, or no longer. */
  async markSoon(node: NodeFacts, to: SoonStanding): Promise<void> {
    this.#assertLeading();
    await this.#ports.marks.markSoon(node, to);
  }

  /**
   * Uncordons a node whose departure no longer exists. The watch may lag behind, so that a
   * departure just made is not seen yet: it is looked for afresh first.
   */
  async clearOrphan(node: NodeFacts, departure: string): Promise<void> {
    const found = await this.#ports.store.read(departure);
    const live = found.kind === "Done" && isLive(found.departure);
    if (live && found.departure.node.uid === node.uid) return;
    await this.uncordon({ node, departure });
    this.telemetry.log.warn("orphaned-cordon-cleared", { node: node.name, departure });
  }

  /** Each of its calls looks first whether we still lead; undefined where nobody can do such. */
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
