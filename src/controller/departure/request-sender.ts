import { mayBeDetached } from "../../core/action/action-plan.ts";
import { type Departure, isNoticed } from "../../core/departure/departure.ts";
import type { EvictionAnswer } from "../../core/drain/drain-answer.ts";
import type { DrainAct } from "../../core/drain/drain-progress.ts";
import type { DepartureRequest, RequestAnswer } from "../../core/next/request.ts";
import type { LastLook } from "../../core/next/scene.ts";
import { markOf } from "../../core/notice/interruption.ts";
import { sharedMachine } from "../../core/policy/release-answer.ts";
import { seconds } from "../../core/time/time.ts";
import { LastcallError, messageOf } from "../../errors.ts";
import type { ActionRuns } from "../action/action-runs.ts";
import { releaserOf } from "../release-checks.ts";
import type { DepartureOptions } from "./departure-options.ts";
import { drainActor } from "./drain-actor.ts";

/** What the requests of a departure are sent for. */
export interface SendSubject {
  readonly departure: () => Departure;
  readonly actions: ActionRuns;
  /** Whether the newest evaluation still asks for it. */
  readonly isWanted: (key: string) => boolean;
  /**
   * The grace period for an act that is sent now; undefined: the pod's own. Throws if it is no
   * longer wanted.
   */
  readonly graceAtTurn: (key: string, act: DrainAct) => number | undefined;
  /** Decides once more, on what has just been read, whether the machine is released. */
  readonly isReleasedAfter: (look: LastLook, key: string) => boolean;
}

type PodRequest = Extract<DepartureRequest, { readonly kind: "Pod" }>;
type ReleaseRequested = Extract<DepartureRequest, { readonly kind: "Release" }>;

/**
 * For so long, what allowed a voluntary start allows its cordon. After that, windows, holds and
 * gates are asked again.
 */
const startHoldsMs = seconds(5);

/** Sends what a departure asks for. Each request has one place here. */
export class RequestSender {
  readonly #options: DepartureOptions;
  readonly #subject: SendSubject;

  constructor(options: DepartureOptions, subject: SendSubject) {
    this.#options = options;
    this.#subject = subject;
  }

  /** Resolves with the response. Rejects with a `LastcallError`, or the signal's reason. */
  async send(
    request: Exclude<DepartureRequest, PodRequest>,
    signal: AbortSignal,
  ): Promise<RequestAnswer> {
    const { marks, cordons, writer, placeholders } = this.#options;
    const { actions } = this.#subject;
    const departure = this.#subject.departure();
    const { node } = departure;
    const { name, uid } = node;
    switch (request.kind) {
      case "Cordon":
        return cordons.during(() =>
          marks.cordon(node, {
            ...markOf(departure),
            seen: request.seen,
            validMs: isNoticed(departure) ? undefined : startHoldsMs,
          }),
        );
      case "RenewMarks":
        return marks.cordon(node, { ...markOf(departure), renews: true });
      case "DropInstant":
        return done(writer.dropInstant(departure));
      case "Uncordon":
        return marks.uncordon({ name, uid, departure: request.departure, seen: request.seen });
      case "HandOver":
        return { kind: await writer.handOver(departure, request.owner) };
      case "Reserve":
        return done(placeholders.create(request.placeholder));
      case "Unreserve":
        return done(placeholders.remove(request.name));
      case "RunAction": {
        const isWanted = () => this.#subject.isWanted(request.key);
        return done(actions.run(request.name, { signal, isWanted }));
      }
      case "UndoAction":
        return done(actions.undo(request.name, signal));
      case "InterruptActions":
        return done(actions.interrupt(request.names, signal));
      case "RecordActions":
        return done(actions.record(signal));
      case "Release":
        return this.#release(request, signal);
      case "RemoveNode": {
        const result = await marks.remove(node);
        // A new machine has taken over the Node, with its cordon.
        if (result.kind === "Mismatch")
          await marks.uncordon({ name, uid, departure: departure.name });
        return { kind: "Done" };
      }
    }
  }

  /** Whether a request ends as soon as it is no longer wanted. */
  mayStop(request: DepartureRequest): boolean {
    if (request.kind === "RunAction") return this.#subject.actions.mayStop(request.name);
    return request.stops === true;
  }

  /** Asks a pod to leave. Never rejects: a lost response is one, too. */
  async askPod({ act, key, dueAt }: PodRequest): Promise<EvictionAnswer> {
    const actor = drainActor(this.#options);
    const onTurn = () => this.#subject.graceAtTurn(key, act);
    try {
      switch (act.kind) {
        case "Evict":
          return await actor.evict(act.pod, { graceSeconds: onTurn, dueAt });
        case "Delete":
          return await actor.remove(act.pod, { graceSeconds: onTurn, dueAt, reason: act.reason });
        case "RestartOwner":
          return await actor.restartOwner(act.pod, act.owner, { onTurn, dueAt });
      }
    } catch (error) {
      return { kind: "NoAnswer", message: messageOf(error) };
    }
  }

  async #release(request: ReleaseRequested, signal: AbortSignal): Promise<RequestAnswer> {
    const { releaserFor } = this.#options;
    const { key, providerID, machineId, mode } = request;
    const lastLook = async () => {
      const look = await this.#look();
      if (!this.#subject.isReleasedAfter(look, key)) return "Keep";
      const { shared } = look;
      if (shared === undefined) return "Clear";
      throw new LastcallError("CLOUD_REFUSED", `Cannot release the machine: ${shared}`);
    };
    const isOutOfGroup = () => mayBeDetached(this.#subject.actions.records);
    const requestId = this.#subject.departure().uid;
    const { kind } = await releaserOf({ providerID, mode }, releaserFor).release(
      { providerID, machineId, mode, requestId, lastLook, isOutOfGroup },
      signal,
    );
    return { kind: kind === "Kept" ? "Kept" : "Done" };
  }

  /** Reads the node, its pods and the Departure. */
  async #look(): Promise<LastLook> {
    const { readNode, writer, pods, view } = this.#options;
    const departure = this.#subject.departure();
    const { name } = departure.node;
    const [node, isLive] = await Promise.all([readNode(name), writer.isLive(departure)]);
    const shared = sharedMachine(node ?? departure.node, view().nodes);
    return { node, isLive, shared, pods: node === undefined ? [] : await pods.list(name) };
  }
}

async function done(work: Promise<unknown>): Promise<RequestAnswer> {
  await work;
  return { kind: "Done" };
}
