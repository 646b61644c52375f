import type { ActionRunner } from "../contracts/action-runner.ts";
import type {
  InstanceReleaser,
  MachineState,
  ReleasedMachine,
  ReleaseRequest,
} from "../contracts/cloud.ts";
import type { LeaveOptions, MarkResult, RestartOptions } from "../contracts/cluster.ts";
import type { NodeFacts } from "../core/cluster/node.ts";
import type { OwnerFacts, PodIdentity } from "../core/cluster/pod.ts";
import { type Departure, isLive } from "../core/departure/departure.ts";
import type { ForceReason } from "../core/departure/drain-reason.ts";
import type { EvictionAnswer } from "../core/drain/drain-answer.ts";
import type { NewPlaceholder } from "../core/drain/placeholder-plan.ts";
import { markOf } from "../core/notice/interruption.ts";
import type { SoonStanding } from "../core/plan/plan-status.ts";
import type { ActionKind } from "../core/policy/action.ts";
import { noReleaser } from "../core/policy/release-answer.ts";
import { assert, type ErrorCode, LastcallError } from "../errors.ts";
import { DepartureWriter } from "./departure-writer.ts";

interface RefusedRestart {
  readonly pod: PodIdentity;
  readonly owner: OwnerFacts;
  readonly answer: Extract<EvictionAnswer, { kind: "Refused" }>;
}

/**
 * Performs all writes to the cluster and the cloud; those to Departures are in `DepartureWriter`.
 * Each act identifies its target (uid, resourceVersion, machine id), so that it cannot hit the
 * wrong node. Every act is idempotent.
 */
export class Executor extends DepartureWriter {
  /** `seen` is the node as the watch shows it, which saves a read if it is current. */
  async cordon(departure: Departure, seen: NodeFacts | undefined): Promise<MarkResult> {
    return this.ports.marks.cordon(departure.node, { ...markOf(departure), seen });
  }

  /** Refreshes existing marks after a change of cause or deadline. */
  async renewMarks(departure: Departure): Promise<void> {
    await this.ports.marks.cordon(departure.node, { ...markOf(departure), renews: true });
  }

  async uncordon(target: {
    readonly node: { readonly name: string; readonly uid: string };
    readonly departure: string;
  }): Promise<MarkResult> {
    return this.ports.marks.uncordon({
      name: target.node.name,
      uid: target.node.uid,
      departure: target.departure,
    });
  }

  async evict(pod: PodIdentity, options: LeaveOptions): Promise<EvictionAnswer> {
    const answer = await this.ports.pods.evict(pod, options);
    this.telemetry.metrics.count("lastcall_evictions_total", { result: answer.kind });
    return answer;
  }

  /** Deletes a pod regardless of its budget, which is always counted and logged. */
  async remove(
    pod: PodIdentity,
    { reason, ...options }: LeaveOptions & { readonly reason: ForceReason },
  ): Promise<EvictionAnswer> {
    const { dueAt } = options;
    const problem = await this.ports.pods.markDisrupted(pod, { reason, dueAt });
    if (problem !== undefined) {
      const { namespace, name } = pod;
      this.telemetry.log.warn("disruption-not-marked", { namespace, pod: name, error: problem });
    }
    const answer = await this.ports.pods.remove(pod, options);
    this.telemetry.metrics.count("lastcall_pods_forced_total", { reason });
    return answer;
  }

  async restartOwner(
    pod: PodIdentity,
    owner: OwnerFacts,
    options: RestartOptions,
  ): Promise<EvictionAnswer> {
    const answer = await this.ports.pods.restartOwner(pod, owner, options);
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
    await this.ports.placeholders.create(placeholder);
  }

  /** Deletes a Failed pod that an earlier machine of the node left behind. */
  removeFailed(pod: PodIdentity): Promise<EvictionAnswer> {
    return this.ports.pods.remove(pod, { graceSeconds: () => undefined });
  }

  async removePlaceholder(name: string): Promise<void> {
    await this.ports.placeholders.remove(name);
  }

  /** The releaser that checks a machine; undefined if there is none. Read-only. */
  checkerFor(machine: ReleasedMachine): Pick<InstanceReleaser, "check"> | undefined {
    return this.ports.releaserFor(machine);
  }

  /** Looks up the machine in its cloud or at its owner. Read-only. Rejects if none is known. */
  async describe(machine: ReleasedMachine, signal: AbortSignal): Promise<MachineState> {
    return this.#releaser(machine).describe(machine.providerID, signal);
  }

  async release(
    departure: Departure,
    how: Omit<ReleaseRequest, "providerID" | "requestId">,
    signal: AbortSignal,
  ): ReturnType<InstanceReleaser["release"]> {
    const { providerID } = departure.node;
    assert(providerID !== undefined, "a machine is released only where its providerID is known");
    const request = { ...how, providerID, requestId: departure.uid };
    return this.#releaser(request).release(request, signal);
  }

  /** Deletes the Node object of a released machine; uncordons it if a new machine has it. */
  async removeNode(departure: Departure): Promise<void> {
    const result = await this.ports.marks.remove(departure.node);
    if (result.kind !== "Mismatch") return;
    await this.uncordon({ node: departure.node, departure: departure.name });
  }

  /** Adds or removes the taint that makes the scheduler prefer other nodes. */
  async markSoon(node: NodeFacts, to: SoonStanding): Promise<void> {
    await this.ports.marks.markSoon(node, to);
  }

  /**
   * Uncordons a node whose departure no longer exists. Reads the departure first, because the watch
   * may not show one that was just created.
   */
  async clearOrphan(node: NodeFacts, departure: string): Promise<void> {
    const found = await this.ports.store.read(departure);
    const live = found.kind === "Done" && isLive(found.departure);
    if (live && found.departure.node.uid === node.uid) return;
    await this.uncordon({ node, departure });
    this.telemetry.log.warn("orphaned-cordon-cleared", { node: node.name, departure });
  }

  /** The runner of a kind; undefined if this process has none. */
  async actionRunner(kind: ActionKind): Promise<ActionRunner | undefined> {
    return this.ports.actionPorts?.runners(kind);
  }

  #releaser(machine: ReleasedMachine): InstanceReleaser {
    const releaser = this.ports.releaserFor(machine);
    if (releaser !== undefined) return releaser;
    const problem = `Cannot release a machine: ${noReleaser(machine.providerID)}`;
    throw new LastcallError("CLOUD_REFUSED", problem);
  }
}
