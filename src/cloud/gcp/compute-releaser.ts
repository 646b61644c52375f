import type { Clock } from "../../contracts/clock.ts";
import type {
  InstanceReleaser,
  MachineState,
  Releasability,
  ReleaseQuestion,
  ReleaseRequest,
  ReleaseResult,
} from "../../contracts/instance-releaser.ts";
import type { Rng } from "../../core/chance/rng.ts";
import { type Instant, type Millis, minutes, seconds } from "../../core/time/time.ts";
import { isLastcallError, LastcallError } from "../../errors.ts";
import { type BackoffRule, backoff } from "./backoff.ts";
import type { ComputeClient } from "./compute-client.ts";
import {
  type Instance,
  type InstanceRef,
  instancePath,
  instanceRefOf,
  readInstance,
} from "./compute-instance.ts";
import { awaitOperation } from "./compute-operation.ts";
import { releaseCall } from "./release-call.ts";
import { checkRelease } from "./release-check.ts";
import { checkRequestId, requestIdAfter } from "./request-id.ts";

export interface ComputeReleaserOptions {
  readonly client: ComputeClient;
  readonly clock: Clock;
  readonly rng: Rng;
  /** How long one release waits for the machine to go; 20 minutes by default. */
  readonly goneWithinMs?: Millis | undefined;
}

/** Attempts of the act itself; before each the machine is looked at again. */
const actAttempts = 4;
const actRule: BackoffRule = { firstMs: seconds(2), capMs: seconds(15) };
const pollRule: BackoffRule = { firstMs: seconds(2), capMs: seconds(15) };

/** How the machine meant stands now. */
type Standing = "Staying" | "Leaving" | "Gone" | "Replaced";

interface Meant {
  readonly ref: InstanceRef;
  readonly request: ReleaseRequest;
  /** The start of the boot that was first seen. */
  readonly startedAt: Instant | undefined;
}

interface Bounds {
  /** On the monotonic clock, in milliseconds. */
  readonly giveUpAt: number;
  readonly signal: AbortSignal;
}

/**
 * Lets Compute Engine machines go, through their managed group where the mode says so. An abort
 * rejects with the signal's reason and leaves the cloud to finish what was asked; a later call with
 * the same request takes it up again.
 */
export class ComputeReleaser implements InstanceReleaser {
  readonly #options: ComputeReleaserOptions;
  readonly #goneWithinMs: Millis;
  /** How many operations under a request id ended in an error; see `requestIdAfter`. */
  readonly #failures = new Map<string, number>();

  constructor(options: ComputeReleaserOptions) {
    this.#options = options;
    this.#goneWithinMs = options.goneWithinMs ?? minutes(20);
  }

  async describe(providerID: string, signal: AbortSignal): Promise<MachineState> {
    const instance = await this.#look(instanceRefOf(providerID), signal);
    if (instance === undefined) return { kind: "Absent" };
    const { id, bornAt, stage } = instance;
    return { kind: "Present", id, bornAt, running: stage === "Running" };
  }

  async check(question: ReleaseQuestion, signal: AbortSignal): Promise<Releasability> {
    const ref = instanceRefOf(question.providerID);
    const instance = await this.#look(ref, signal);
    return checkRelease({ ref, instance, mode: question.mode }, this.#options.client, signal);
  }

  async release(request: ReleaseRequest, signal: AbortSignal): Promise<ReleaseResult> {
    checkRequestId(request.requestId);
    const ref = instanceRefOf(request.providerID);
    const first = await this.#look(ref, signal);
    const meant: Meant = { ref, request, startedAt: first?.startedAt };
    const bounds = { giveUpAt: this.#options.clock.monotonic() + this.#goneWithinMs, signal };
    const ready = await this.#lastLooks(meant, { first, signal });
    if (ready === "Gone") return { kind: "AlreadyGone" };
    if (ready === "Replaced" || ready === "Kept") return { kind: ready };
    if (ready !== "Leaving" && (await this.#letGo(meant, { ready, bounds })) === "Kept") {
      return { kind: "Kept" };
    }
    await this.#untilGone(meant, bounds);
    this.#failures.delete(request.requestId);
    return { kind: "Released" };
  }

  /**
   * The machine as it stays, with the node looked at after it; both again where the node's look took time.
   * Else how the machine stands that needs no request, or that it is to be kept.
   */
  async #lastLooks(
    meant: Meant,
    { first, signal }: { readonly first: Instance | undefined; readonly signal: AbortSignal },
  ): Promise<Instance | Exclude<Standing, "Staying"> | "Kept"> {
    for (let seen = first; ; seen = await this.#look(meant.ref, signal)) {
      if (seen === undefined) return "Gone";
      const standing = standingOf(seen, meant);
      if (standing !== "Staying") return standing;
      const look = await meant.request.lastLook();
      signal.throwIfAborted();
      if (look === "Keep") return "Kept";
      if (look === "Clear") return seen;
    }
  }

  /** Asks the cloud to let the machine go; a fault that can pass leads to other looks. */
  async #letGo(
    meant: Meant,
    start: { readonly ready: Instance; readonly bounds: Bounds },
  ): Promise<"Asked" | "Kept"> {
    const { clock, rng } = this.#options;
    const { signal } = start.bounds;
    let seen = start.ready;
    for (let attempt = 0; ; attempt++) {
      try {
        await this.#act(meant, { seen, bounds: start.bounds });
        return "Asked";
      } catch (error) {
        const again = isLastcallError(error) && error.retryable && attempt + 1 < actAttempts;
        if (!again) throw error;
      }
      await clock.sleep(backoff(attempt, { rule: actRule, rng }), signal);
      const first = await this.#look(meant.ref, signal);
      const ready = await this.#lastLooks(meant, { first, signal });
      if (typeof ready === "string") return ready === "Kept" ? "Kept" : "Asked";
      seen = ready;
    }
  }

  /** One act and its operation. A 404 to an act is not believed: it was seen while the machine ran. */
  async #act(
    meant: Meant,
    now: { readonly seen: Instance; readonly bounds: Bounds },
  ): Promise<void> {
    const { client, clock, rng } = this.#options;
    const { mode, requestId } = meant.request;
    const failures = this.#failures.get(requestId) ?? 0;
    const started = releaseCall({ ref: meant.ref, instance: now.seen, mode });
    const query = { requestId: requestIdAfter(requestId, failures) };
    const answer = await client.send({ ...started.call, query }, now.bounds.signal);
    if (answer.kind === "NotFound") throw notFoundOnAct(started.call.action);
    const { giveUpAt, signal } = now.bounds;
    const wait = { started, operation: answer.body, client, clock, rng, giveUpAt };
    const end = await awaitOperation(wait, signal);
    if (end.kind !== "Failed") return;
    this.#failures.set(requestId, failures + 1);
    throw end.fault;
  }

  /** An operation of a group is DONE when the work is scheduled: only the machine tells that it went. */
  async #untilGone(meant: Meant, bounds: Bounds): Promise<void> {
    const { clock, rng } = this.#options;
    for (let round = 0; ; round++) {
      const seen = await this.#look(meant.ref, bounds.signal);
      const standing = standingOf(seen, meant);
      if (standing === "Gone" || standing === "Replaced") return;
      if (clock.monotonic() >= bounds.giveUpAt) throw stillThere(meant, seen?.status ?? "");
      await clock.sleep(backoff(round, { rule: pollRule, rng }), bounds.signal);
    }
  }

  async #look(ref: InstanceRef, signal: AbortSignal): Promise<Instance | undefined> {
    const action = `read the instance ${ref.project}/${ref.zone}/${ref.name}`;
    const permission = "compute.instances.get";
    const answer = await this.#options.client.sendPatiently(
      { method: "GET", path: instancePath(ref), action, permission },
      signal,
    );
    if (answer.kind === "NotFound") return undefined;
    const instance = readInstance(answer.body);
    if (instance !== undefined) return instance;
    const found = "found an answer without id or status";
    throw new LastcallError(
      "CLOUD_UNREACHABLE",
      `Cannot ${action}: ${found}, expected an instance`,
    );
  }
}

function standingOf(seen: Instance | undefined, meant: Meant): Standing {
  if (seen === undefined) return "Gone";
  if (seen.id !== meant.request.machineId || isRestarted(seen, meant)) return "Replaced";
  if (seen.stage === "Stopped") return "Gone";
  return seen.stage === "Leaving" ? "Leaving" : "Staying";
}

/** A preempted machine that its group starts again between two looks keeps its id: a new boot, not the one meant. */
function isRestarted(seen: Instance, meant: Meant): boolean {
  if (meant.startedAt === undefined || seen.startedAt === undefined) return false;
  return seen.startedAt !== meant.startedAt;
}

function notFoundOnAct(action: string): LastcallError {
  const found = "found the answer 404 although the machine was there just now";
  return new LastcallError(
    "CLOUD_REFUSED",
    `Cannot ${action}: ${found}, expected the machine found`,
    {
      retryable: true,
    },
  );
}

function stillThere(meant: Meant, status: string): LastcallError {
  const { project, zone, name } = meant.ref;
  const found = `found it ${status} after the whole wait`;
  return new LastcallError(
    "CLOUD_REFUSED",
    `Cannot release ${project}/${zone}/${name}: ${found}, expected it gone (is it still a member of its group?)`,
    { retryable: true },
  );
}
