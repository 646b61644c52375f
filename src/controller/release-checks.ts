import type { Clock } from "../contracts/clock.ts";
import type { InstanceReleaser, ReleasedMachine, ReleaserChoice } from "../contracts/cloud.ts";
import type { FleetView } from "../contracts/cluster.ts";
import type { Telemetry } from "../contracts/telemetry.ts";
import { type DetachState, detachState } from "../core/action/action-plan.ts";
import { anothersMachine } from "../core/cluster/machine-name.ts";
import type { NodeFacts } from "../core/cluster/node.ts";
import { type Departure, isLive } from "../core/departure/departure.ts";
import { policyFor } from "../core/notice/interruption.ts";
import type { FleetPlan } from "../core/plan/fleet-plan.ts";
import { type Policy, type ReleaseMode, selectPolicy } from "../core/policy/policy.ts";
import {
  answersByName,
  impossible,
  noReleaser,
  ownerProblem,
  problemOfFault,
  problemOfName,
  type ReleasabilityQuestion,
  type ReleasableNode,
  type ReleaseAnswer,
  type ReleaseAnswers,
  releaseModeOf,
} from "../core/policy/release-answer.ts";
import { type Millis, minutes, plus, seconds } from "../core/time/time.ts";
import { isLastcallError, LastcallError, messageOf } from "../errors.ts";

/** What would have a drain rolled back. */
export type DrainObstacle =
  | {
      readonly detail: string;
      /** It kept the last drain: the pods could not be listed in time. */
      readonly isFormer?: boolean;
    }
  | "None"
  /** The pods could not be listed in time, and none kept the last drain. */
  | "Unknown";

export interface ReleaseCheckOptions {
  readonly releaserFor: ReleaserChoice;
  readonly telemetry: Telemetry;
  readonly clock: Clock;
  /** The current state of the watched fleet, whose policies and departures have actions. */
  readonly view: () => FleetView;
  /** Looks at the pods of a node for what would have its drain rolled back. Never rejects. */
  readonly drainObstacle?:
    | ((node: NodeFacts, policy: Policy | undefined) => Promise<DrainObstacle>)
    | undefined;
}

/** What to check: the machines that could leave now, and those of the plan. */
export interface ReleaseNeed {
  readonly asks: readonly ReleasabilityQuestion[];
  readonly plan: FleetPlan;
  readonly departures: readonly Departure[];
}

/** How many checks run concurrently, which bounds the load on the cloud's API. */
const atOnce = 4;
/** A cloud that does not respond within this time counts as unreachable. */
const answerWithinMs: Millis = seconds(10);
/** How long a positive answer allows a departure to start. */
const goodForMs: Millis = seconds(30);
/** A problem is checked again after this. */
const problemForMs: Millis = minutes(1);
/** How often one machine of each policy and cloud is checked even if none is due. */
const sampledForMs: Millis = minutes(10);

interface CachedReleaseCheck {
  readonly question: ReleasabilityQuestion;
  readonly answer: ReleaseAnswer;
  /** When to check a problem again (monotonic). */
  readonly againMs: number;
}

/**
 * Checks with the clouds that machines can be released, before their nodes are touched. A pass
 * never waits for it: it uses the known answers and runs again when there are new ones. A problem
 * counts until a later answer is positive; a positive answer counts only for a moment.
 */
export class ReleaseChecks {
  readonly #options: ReleaseCheckOptions;
  readonly #listeners = new Set<() => void>();
  readonly #entries = new Map<string, CachedReleaseCheck>();
  readonly #sampledUntilMs = new Map<string, number>();
  /** Clouds that did not respond, whose next checks wait. */
  readonly #pausedUntilMs = new Map<string, number>();
  /** Logged problems, by cloud. */
  readonly #logged = new Map<string, string>();
  #isAsking = false;
  /** More checks were requested during a round. */
  #hasMore = false;

  constructor(options: ReleaseCheckOptions) {
    this.#options = options;
  }

  /** Calls the listener when an answer changes a decision. Returns the unsubscribe function. */
  onNews(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** The known answers for the machines of the nodes. */
  answers(nodes: readonly NodeFacts[]): ReleaseAnswers {
    const { releaserFor } = this.#options;
    const answers = answersByName(nodes, (node) => {
      const mode = releaseModeOf(node, { release: "Recreate" });
      return checkerOf({ node, mode }, releaserFor) !== undefined;
    });
    for (const [uid, { answer }] of this.#entries) {
      if (!answers.has(uid) || answer.mode === "None") answers.set(uid, answer);
    }
    return answers;
  }

  /** Starts a round of checks, unless one is running. */
  ask(need: ReleaseNeed, signal: AbortSignal): void {
    if (this.#isAsking) {
      this.#hasMore = need.asks.length > 0;
      return;
    }
    this.#hasMore = false;
    const round = this.#nextRound(need);
    if (round.length === 0) return;
    this.#isAsking = true;
    void this.#askAll(round, signal)
      .catch((error: unknown) => this.#failed(error, signal))
      .finally(() => {
        this.#isAsking = false;
        if (this.#hasMore && !signal.aborted) this.#tellNews();
      });
  }

  /**
   * Checks one machine whose departure is about to start, and waits for the answer.
   */
  async askNow(question: ReleasabilityQuestion, signal: AbortSignal): Promise<ReleaseAnswer> {
    const answer = await this.#answerTo(question, signal);
    if (this.#note(question, answer) === "News") this.#tellNews();
    return answer;
  }

  #tellNews(): void {
    for (const listener of this.#listeners) listener();
  }

  #nextRound(need: ReleaseNeed): readonly ReleasabilityQuestion[] {
    const samples = this.#samples(need.plan);
    const questions = [...need.asks, ...samples.values(), ...this.#staleProblems(need)];
    const known = (question: ReleasabilityQuestion) =>
      question.mode !== "None" &&
      problemOfName(
        question.node,
        () => checkerOf(question, this.#options.releaserFor) !== undefined,
      ) !== undefined;
    const distinct = new Map<string, ReleasabilityQuestion>();
    for (const question of questions) {
      if (distinct.size === atOnce) break;
      if (distinct.has(question.node.uid) || known(question) || this.#isPaused(question)) continue;
      distinct.set(question.node.uid, question);
    }
    const sampledUntilMs = this.#options.clock.monotonic() + sampledForMs;
    for (const [key, { node }] of samples) {
      if (distinct.has(node.uid)) this.#sampledUntilMs.set(key, sampledUntilMs);
    }
    return [...distinct.values()];
  }

  /** One machine per policy and cloud, so that problems are reported at the start. */
  #samples({ policies }: FleetPlan): ReadonlyMap<string, ReleasabilityQuestion> {
    const nowMs = this.#options.clock.monotonic();
    const samples = new Map<string, ReleasabilityQuestion>();
    for (const { policy, departures } of policies) {
      for (const { node } of departures) {
        const mode = releaseModeOf(node, policy.instance);
        if (mode === "None" || ownerProblem(node, mode) !== undefined) continue;
        const key = `${policy.name} ${mode} ${cloudOf(node)}`;
        const isDue = (this.#sampledUntilMs.get(key) ?? 0) <= nowMs;
        if (isDue && !samples.has(key)) samples.set(key, { node, mode });
      }
    }
    return samples;
  }

  /** The problems to check again, least recently checked first. */
  #staleProblems({ plan, departures }: ReleaseNeed): readonly ReleasabilityQuestion[] {
    const planned = plan.policies.flatMap((one) => one.departures.map(({ node }) => node.uid));
    const live = departures.filter(isLive).map(({ node }) => node.uid);
    const wanted = new Set([...planned, ...live]);
    for (const uid of this.#entries.keys()) if (!wanted.has(uid)) this.#entries.delete(uid);
    const nowMs = this.#options.clock.monotonic();
    return [...this.#entries.values()]
      .filter(({ answer, againMs }) => answer.kind === "Problem" && againMs <= nowMs)
      .sort((a, b) => a.againMs - b.againMs)
      .map(({ question }) => question);
  }

  #isPaused({ node, mode }: ReleasabilityQuestion): boolean {
    if (mode === "None") return false;
    return (this.#pausedUntilMs.get(cloudOf(node)) ?? 0) > this.#options.clock.monotonic();
  }

  async #askAll(round: readonly ReleasabilityQuestion[], signal: AbortSignal): Promise<void> {
    const notes = await Promise.all(
      round.map(async (question) => {
        const answer = await this.#answerTo(question, signal);
        return this.#note(question, answer);
      }),
    );
    if (notes.includes("News") && !signal.aborted) this.#tellNews();
  }

  #answerTo(question: ReleasabilityQuestion, signal: AbortSignal): Promise<ReleaseAnswer> {
    const before = this.#entries.get(question.node.uid)?.answer;
    return askAboutRelease({ ...question, before }, this.#options, signal);
  }

  #note(question: ReleasabilityQuestion, answer: ReleaseAnswer): "News" | "Known" {
    const { uid } = question.node;
    const before = this.#entries.get(uid)?.answer;
    const againMs = this.#options.clock.monotonic() + problemForMs;
    this.#entries.set(uid, { question, answer, againMs });
    if (question.mode !== "None") {
      // A pod that keeps its node says nothing against the cloud, which has been asked before.
      this.#noteCloud(cloudOf(question.node), isOfCloud(answer) ? answer : { kind: "Possible" });
    }
    if (answer.kind === "Possible" || before?.kind !== "Problem") return "News";
    return before.reason === answer.reason && before.detail === answer.detail ? "Known" : "News";
  }

  /** Notes whether the cloud responds: one positive answer resumes the other checks. */
  #noteCloud(cloud: string, answer: ReleaseAnswer): void {
    const nowMs = this.#options.clock.monotonic();
    const { log } = this.#options.telemetry;
    if (answer.kind === "Problem") {
      if (answer.reason === "CloudUnreachable") {
        this.#pausedUntilMs.set(cloud, nowMs + problemForMs);
      }
      const { reason, detail } = answer;
      if (this.#logged.get(cloud) !== reason) {
        log.warn("machines-not-releasable", { cloud, reason, message: detail });
      }
      this.#logged.set(cloud, reason);
      return;
    }
    this.#pausedUntilMs.delete(cloud);
    if (!this.#logged.delete(cloud)) return;
    log.info("machines-releasable", { cloud });
    for (const [uid, entry] of this.#entries) {
      const isSame = cloudOf(entry.question.node) === cloud && entry.answer.kind === "Problem";
      if (isSame) this.#entries.set(uid, { ...entry, againMs: nowMs });
    }
  }

  #failed(error: unknown, signal: AbortSignal): void {
    if (signal.aborted) return;
    this.#options.telemetry.log.error("release-check-failed", { error: messageOf(error) });
  }
}

/** Checks one machine with a timeout. A timeout is an answer as well. */
async function askAboutRelease(
  question: ReleasabilityQuestion & { readonly before: ReleaseAnswer | undefined },
  { releaserFor, telemetry, clock, view, drainObstacle = nothingKnown }: ReleaseCheckOptions,
  signal: AbortSignal,
): Promise<ReleaseAnswer> {
  const { node, mode, before } = question;
  const pods = async (): Promise<ReleaseAnswer> => {
    const obstacle = await drainObstacle(node, policyOf(node, view()));
    const isUnlisted = typeof obstacle === "string" ? obstacle === "Unknown" : obstacle.isFormer;
    // What is known to keep the node is not gone because nobody answers.
    if (isUnlisted && before?.kind === "Problem" && !isOfCloud(before)) return before;
    if (typeof obstacle !== "string") {
      return { kind: "Problem", reason: "DrainImpossible", detail: obstacle.detail, mode };
    }
    return { kind: "Possible", mode, untilAt: plus(clock.now(), goodForMs) };
  };
  if (mode === "None") return pods();
  const { providerID } = node;
  const refused = ownerProblem(node, mode);
  if (refused !== undefined) return { ...impossible(refused), mode };
  const checker = checkerOf(question, releaserFor);
  const byName = problemOfName(node, () => checker !== undefined);
  if (!providerID || checker === undefined) return byName ?? impossible("the machine is unknown");
  const over = new AbortController();
  const until = AbortSignal.any([signal, over.signal]);
  const limit = clock.sleep(answerWithinMs, until).then(() => {
    throw noAnswer(providerID);
  });
  try {
    const detach = detachOf(node, view());
    const found = await Promise.race([checker.check({ providerID, mode, detach }, until), limit]);
    if (found.kind !== "Possible") return { ...impossible(found.problem), mode };
    const another = anothersMachine(node, found.names);
    return another === undefined ? await pods() : { ...impossible(another), mode };
  } catch (error) {
    signal.throwIfAborted();
    const fault = isLastcallError(error) ? error : unexpected(providerID, error);
    telemetry.metrics.count("lastcall_errors_total", { code: fault.code });
    return { ...problemOfFault(fault), mode };
  } finally {
    over.abort();
  }
}

async function nothingKnown(): Promise<"None"> {
  return "None";
}

/** Whether an answer says something of the cloud, and not of the pods on the node. */
function isOfCloud(answer: ReleaseAnswer): boolean {
  return answer.kind !== "Problem" || answer.reason !== "DrainImpossible";
}

/** The policy by which the node leaves. */
function policyOf(node: NodeFacts, { departures, policies }: FleetView): Policy | undefined {
  const first = departures.find((one) => isLive(one) && one.node.uid === node.uid);
  return first ? policyFor(first, node, policies) : selectPolicy(node, policies)?.policy;
}

/** Whether actions take the machine out of its group, by the node's departure or its policy. */
function detachOf(node: NodeFacts, view: FleetView): DetachState | undefined {
  const live = view.departures.filter((one) => isLive(one) && one.node.uid === node.uid);
  const [first] = live;
  const policy = policyOf(node, view);
  return detachState(policy?.actions ?? [], {
    cause: first?.cause ?? "Planned",
    records: live.flatMap(({ status }) => status.actions ?? []),
  });
}

function checkerOf(
  { node: { providerID }, mode }: { readonly node: ReleasableNode; readonly mode: ReleaseMode },
  releaserFor: ReleaserChoice,
): Pick<InstanceReleaser, "check"> | undefined {
  return providerID ? releaserFor({ providerID, mode }) : undefined;
}

/** The releaser of a machine. Throws `CLOUD_REFUSED` if there is none. */
export function releaserOf(
  machine: ReleasedMachine,
  releaserFor: ReleaserChoice,
): InstanceReleaser {
  const releaser = releaserFor(machine);
  if (releaser !== undefined) return releaser;
  const problem = `Cannot release a machine: ${noReleaser(machine.providerID)}`;
  throw new LastcallError("CLOUD_REFUSED", problem);
}

function noAnswer(providerID: string): LastcallError {
  const withinSeconds = answerWithinMs / 1000;
  return new LastcallError(
    "CLOUD_UNREACHABLE",
    `Cannot check the machine ${providerID}: the cloud has not responded within ${withinSeconds} s`,
  );
}

function unexpected(providerID: string, error: unknown): LastcallError {
  return new LastcallError(
    "CLOUD_UNREACHABLE",
    `Cannot check the machine ${providerID}: ${messageOf(error)}`,
  );
}

/** The cloud, by the scheme of the providerID, such as `gce`. */
function cloudOf({ providerID = "" }: NodeFacts): string {
  return providerID.slice(0, Math.max(0, providerID.indexOf(":")));
}
