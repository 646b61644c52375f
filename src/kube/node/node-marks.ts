import type { Clock } from "../../contracts/clock.ts";
import type {
  DepartingMark,
  MarkResult,
  NodeMarks,
  UnmarkTarget,
} from "../../contracts/cluster.ts";
import type {
  KubeAnswer,
  KubeObject,
  KubeRequest,
  KubeSender,
  PatchOperation,
} from "../../contracts/kube-api.ts";
import {
  compareIdentity,
  departingSoonTaint,
  type NodeFacts,
  type NodeIdentity,
} from "../../core/cluster/node.ts";
import { fieldsOf, isSameJson, textOf } from "../../core/json/json-field.ts";
import type { SoonStanding } from "../../core/plan/plan-status.ts";
import { formatInstant, type Millis, millis } from "../../core/time/time.ts";
import { LastcallError } from "../../errors.ts";
import { isGone, isPassing, nodePath, objectError } from "../object/api-call.ts";
import { translateNode } from "../object/translate-node.ts";
import {
  cordonPatch,
  cordonPatchOfSeen,
  departureAnnotation,
  soonPatch,
  uncordonPatch,
  uncordonPatchOfSeen,
} from "./mark-patch.ts";

/** The marks of contract.md section 3. */
/** How often a conflicting write is retried before it is an error. */
const conflictTries = 8;

/** What to write to a node, or the result if nothing is written. */
type MarkStep =
  | {
      readonly request: KubeRequest;
      /** What an earlier patch has tested is so: whoever refused that will refuse this one. */
      readonly wasRefused?: boolean;
    }
  | { readonly result: MarkResult };

interface Overtaken {
  readonly kind: "Overtaken";
  /** What the answer says. */
  readonly fault: LastcallError;
}

/** Enough, because the API server has just accepted the mark. */
const conditionTries = 4;
const conditionRestMs: Millis = millis(500);

export interface NodeMarksOptions {
  readonly api: KubeSender;
  readonly clock: Clock;
  /**
   * Whether the patch has the taint of a cordoned node as well, which saves the node lifecycle
   * controller a read and a write for each node. Default false, because an agent may not write
   * taints of others (deploy/agent-fallback/cordon).
   */
  readonly writesCordonTaint?: boolean;
}

/** Reads a node and patches it. Each patch tests that nobody has written in between. */
export class KubeNodeMarks implements NodeMarks {
  readonly #api: KubeSender;
  readonly #clock: Clock;
  readonly #writesCordonTaint: boolean;
  /** The newest pending condition of each node. */
  readonly #conditions = new Map<string, KubeRequest>();
  /**
   * By name, the version of a node whose writes are answered as if it were overtaken, although it
   * is not: an admission policy answers alike.
   */
  readonly #refusing = new Map<string, string>();

  constructor({ api, clock, writesCordonTaint = false }: NodeMarksOptions) {
    this.#api = api;
    this.#clock = clock;
    this.#writesCordonTaint = writesCordonTaint;
  }

  async read(name: string): Promise<NodeFacts | undefined> {
    const object = await this.#get(name);
    return object === undefined ? undefined : translateNode(object);
  }

  async cordon(node: NodeIdentity, mark: DepartingMark): Promise<MarkResult> {
    const how = { ...mark, writesCordonTaint: this.#writesCordonTaint };
    const { seen, validMs = Number.POSITIVE_INFINITY } = mark;
    const validUntilMs = this.#clock.monotonic() + validMs;
    const isSame = seen !== undefined && compareIdentity(node, seen) === "Same";
    const tested = isSame ? cordonPatchOfSeen(seen, how) : undefined;
    const first = tested && (await this.#sendTested(node, mark, tested));
    let isAgain = first !== undefined;
    const decide = (object: KubeObject, facts: NodeFacts): MarkStep => {
      const mismatch = mismatchOf(node, facts);
      if (mismatch !== undefined) return { result: mismatch };
      const owner = facts.annotations[departureAnnotation];
      if (owner === undefined && mark.renews === true) return { result: { kind: "Gone" } };
      if (owner !== undefined && owner !== mark.departure) {
        return { result: { kind: "NotOurs", departure: owner } };
      }
      const wasRefused = tested && isSameJson(cordonPatchOfSeen(facts, how), tested);
      const isKnown = this.#refusing.get(node.name) === object.metadata?.resourceVersion;
      if (wasRefused && isKnown && first?.kind === "Overtaken") throw first.fault;
      if (isAgain && this.#clock.monotonic() > validUntilMs) {
        if (wasRefused && first?.kind === "Overtaken") throw first.fault;
        throw conflictOn(node.name, "for as long as it may be cordoned");
      }
      isAgain = true;
      const request = patchRequest(node.name, cordonPatch(object, how));
      return { request: { ...request, dueAt: mark.dueAt }, ...(wasRefused && { wasRefused }) };
    };
    const isToRead = first === undefined || first.kind === "Overtaken";
    const result = isToRead ? await this.#readAndSend(node.name, decide) : first;
    // The caller does not wait for the condition.
    if (result.kind === "Done") this.#setCondition(node, "True", mark);
    return result;
  }

  /** `Overtaken`: the seen node is stale, so that it has to be read, or a policy has refused it. */
  async #sendTested(
    { name }: NodeIdentity,
    { dueAt }: DepartingMark,
    patch: PatchOperation[],
  ): Promise<MarkResult | Overtaken> {
    const request = { ...patchRequest(name, patch), dueAt };
    const answer = await this.#api.send(request);
    if (answer.status < 300) return { kind: "Done" };
    if (isGone(answer)) return { kind: "Gone" };
    const fault = objectError(request, answer);
    if (wasOvertaken(answer)) return { kind: "Overtaken", fault };
    throw fault;
  }

  async uncordon(target: UnmarkTarget): Promise<MarkResult> {
    const result = await this.#readAndSend(
      target.name,
      (object, facts) => {
        if (facts.uid !== target.uid) return { result: { kind: "Gone" } };
        const owner = facts.annotations[departureAnnotation];
        if (owner === undefined) return { result: { kind: "Done" } };
        if (owner !== target.departure) return { result: { kind: "NotOurs", departure: owner } };
        return {
          request: patchRequest(target.name, uncordonPatch(object, this.#writesCordonTaint)),
        };
      },
      (error) => this.#uncordonSeen(target, error),
    );
    const why = { cause: "Stays", message: "The node stays." };
    if (result.kind === "Done") this.#setCondition(target, "False", why);
    return result;
  }

  /** Instead of a read that failed, such as for want of the right: what the watch shows. */
  async #uncordonSeen({ name, uid, departure, seen }: UnmarkTarget, fault: unknown) {
    const how = { departure, writesCordonTaint: this.#writesCordonTaint };
    const patch = seen?.uid === uid ? uncordonPatchOfSeen(seen, how) : undefined;
    if (patch === undefined) throw fault;
    const answer = await this.#api.send(patchRequest(name, patch));
    if (answer.status >= 300) throw fault;
    return { kind: "Done" } as const;
  }

  async markSoon(node: NodeIdentity, to: SoonStanding): Promise<MarkResult> {
    return this.#readAndSend(node.name, (object, facts) => {
      const mismatch = mismatchOf(node, facts);
      if (mismatch !== undefined) return { result: mismatch };
      const owner = facts.annotations[departureAnnotation];
      if (owner !== undefined) return { result: { kind: "NotOurs", departure: owner } };
      const stands = facts.taints.some(({ key }) => key === departingSoonTaint);
      if (stands === (to === "Soon")) return { result: { kind: "Done" } };
      return { request: { ...patchRequest(node.name, soonPatch(object, to)), urgency: "Later" } };
    });
  }

  async remove(node: NodeIdentity): Promise<MarkResult> {
    return this.#readAndSend(node.name, (object, facts) => {
      const mismatch = mismatchOf(node, facts);
      if (mismatch !== undefined) return { result: mismatch };
      const { uid, resourceVersion } = object.metadata ?? {};
      const body = {
        apiVersion: "v1",
        kind: "DeleteOptions",
        preconditions: { uid, resourceVersion },
      };
      const request: KubeRequest = { method: "DELETE", path: nodePath(node.name), body };
      return { request };
    });
  }

  async #readAndSend(
    name: string,
    decide: (object: KubeObject, facts: NodeFacts) => MarkStep,
    onUnread = (fault: unknown): Promise<MarkResult> => Promise.reject(fault),
  ): Promise<MarkResult> {
    let refusedVersion = this.#refusing.get(name);
    for (let tries = 0; tries < conflictTries; tries += 1) {
      let object: KubeObject | undefined;
      try {
        object = await this.#get(name);
      } catch (error) {
        return onUnread(error);
      }
      if (object === undefined) return { kind: "Gone" };
      const { resourceVersion } = object.metadata ?? {};
      const verdict = decide(object, translateNode(object));
      if ("result" in verdict) return verdict.result;
      const answer = await this.#api.send(verdict.request);
      const isTold = wasOvertaken(answer);
      // If nobody has written meanwhile, it was not overtaken.
      const isSame = resourceVersion !== undefined && resourceVersion === refusedVersion;
      const isRefusal = isTold && (isSame || verdict.wasRefused === true);
      if (isRefusal && resourceVersion !== undefined) this.#refusing.set(name, resourceVersion);
      else this.#refusing.delete(name);
      if (answer.status < 300) return { kind: "Done" };
      if (isGone(answer)) return { kind: "Gone" };
      if (isRefusal || !isTold) throw objectError(verdict.request, answer);
      refusedVersion = resourceVersion;
    }
    throw conflictOn(name, `in each of ${conflictTries} attempts`);
  }

  /** Writes the condition in the background. It is informational, so an error stops nothing. */
  #setCondition(
    { name, uid }: Pick<NodeIdentity, "name" | "uid">,
    status: "True" | "False",
    { cause: reason, message }: { readonly cause: string; readonly message: string },
  ): void {
    const at = formatInstant(this.#clock.now());
    const times = { lastHeartbeatTime: at, lastTransitionTime: at };
    const conditions = [{ type: "Departing", status, reason, message, ...times }];
    const request: KubeRequest = {
      method: "PATCH",
      path: `${nodePath(name)}/status`,
      patchType: "application/strategic-merge-patch+json",
      urgency: "Later",
      ignoresBody: true,
      // The uid makes the API server reject the patch for another Node of that name.
      body: { metadata: { uid }, status: { conditions } },
    };
    const isBeingWritten = this.#conditions.has(name);
    this.#conditions.set(name, request);
    if (!isBeingWritten) this.#writeCondition(name, request).catch(() => undefined);
  }

  /** Writes one at a time, so that the last write wins. */
  async #writeCondition(name: string, first: KubeRequest): Promise<void> {
    let request = first;
    let tries = conditionTries;
    while (tries > 0) {
      const isAnswered = await this.#isAnswered(request);
      const newest = this.#conditions.get(name) ?? request;
      if (isAnswered && newest === request) break;
      tries = newest === request ? tries - 1 : conditionTries;
      if (!isAnswered && tries > 0) await this.#clock.sleep(conditionRestMs);
      request = this.#conditions.get(name) ?? request;
    }
    this.#conditions.delete(name);
  }

  /** False if retrying the request may succeed. */
  async #isAnswered(request: KubeRequest): Promise<boolean> {
    try {
      return !isPassing(await this.#api.send(request));
    } catch {
      return false;
    }
  }

  async #get(name: string): Promise<KubeObject | undefined> {
    const request: KubeRequest = { method: "GET", path: nodePath(name) };
    const answer = await this.#api.send(request);
    if (isGone(answer)) return undefined;
    if (answer.status >= 300) throw objectError(request, answer);
    // Anything else would look like another machine, as if the node had left.
    const object = fieldsOf(answer.body);
    if (object.kind === "Node") return object;
    throw new LastcallError(
      "API_ANSWER_INVALID",
      `Cannot read node ${name}: found ${textOf(object.kind) ?? "no kind"}, expected a Node`,
    );
  }
}

function patchRequest(name: string, body: readonly PatchOperation[]): KubeRequest {
  return {
    method: "PATCH",
    path: nodePath(name),
    patchType: "application/json-patch+json",
    urgency: "First",
    ignoresBody: true,
    body,
  };
}

function mismatchOf(then: NodeIdentity, now: NodeIdentity): MarkResult | undefined {
  const found = compareIdentity(then, now);
  if (found === "Same") return undefined;
  return found === "OtherNode" ? { kind: "Gone" } : { kind: "Mismatch", found };
}

function conflictOn(node: string, when: string): LastcallError {
  const problem = `conflicts with other writers ${when}, retrying later`;
  return new LastcallError("CONFLICT", `Cannot write node ${node}: ${problem}`);
}

/**
 * A failed `test` results in 422 and a concurrent write in 409: either way the read was stale, if
 * it was not a ValidatingAdmissionPolicy that refused the write, whose answer is 422 by default.
 */
function wasOvertaken(answer: KubeAnswer): boolean {
  return answer.status === 409 || answer.status === 422;
}
