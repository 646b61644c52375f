import type { NodeFacts } from "../../src/core/cluster/node.ts";
import { decide } from "../../src/core/decide.ts";
import type { Decision, Snapshot, Verdict } from "../../src/core/departure/decision.ts";
import type { Departure } from "../../src/core/departure/departure.ts";
import { statusAfter } from "../../src/core/departure/ledger.ts";
import type { Policy } from "../../src/core/policy/policy.ts";
import { type Instant, instant, plus, seconds } from "../../src/core/time/time.ts";
import { aNode, everyMachine } from "./fleet-builder.ts";

export interface Begun {
  readonly departure: Departure;
  readonly reason: string;
  readonly at: Instant;
}

export interface RunOptions {
  readonly policy: Policy;
  readonly startAt: Instant;
  /** Ages of the initial nodes. */
  readonly agesMs: readonly number[];
  /** From the start of a departure to its end. */
  readonly drainMs: () => number;
  /** From the first decision to start a departure until that is recorded. */
  readonly lagMs?: number;
  /** Whether each node that leaves is replaced. If not, its group shrinks, as the policy says. */
  readonly replaces: boolean;
}

/** A fleet whose nodes leave as core decides, in virtual time; nothing else changes. */
export class DecideRun {
  now: Instant;
  policy: Policy;
  gateAnswers: Snapshot["gateAnswers"] = {};
  nodes: readonly NodeFacts[] = [];
  departures: readonly Departure[] = [];
  readonly moves: { readonly node: string; readonly at: Instant }[] = [];
  readonly begun: Begun[] = [];
  /** The largest number of nodes that were out at once. */
  mostOut = 0;
  readonly #options: RunOptions;
  readonly #asked = new Map<string, Instant>();
  readonly #ends: { readonly uid: string; readonly at: Instant }[] = [];
  #born = 0;

  constructor(options: RunOptions) {
    this.#options = options;
    const { policy, replaces } = options;
    const instance = { ...policy.instance, release: "Delete" } as const;
    this.policy = replaces ? policy : { ...policy, instance };
    this.now = options.startAt;
    for (const age of options.agesMs) this.#bear(age);
  }

  /** Steps until then; the last step is at that instant or just before it. */
  until(at: Instant): void {
    while (this.now < at) this.step(at);
  }

  /** No replica leads: nothing is decided, and no drain progresses. */
  nobodyLeads(forMs: number): void {
    this.now = instant(this.now + forMs);
    for (const [place, end] of this.#ends.entries()) {
      this.#ends[place] = { ...end, at: instant(end.at + forMs) };
    }
  }

  /** Makes one decision pass and applies it, then advances to the next instant with work to do. */
  step(atMost = instant(Number.MAX_SAFE_INTEGER)): void {
    for (const { uid } of this.#ends.filter((end) => end.at <= this.now)) this.#end(uid);
    const { verdict, wants } = this.#pass();
    const next = Math.min(
      verdict.askAgainAt ?? Number.POSITIVE_INFINITY,
      ...this.#ends.map((end) => end.at),
      // The controller's own writes trigger another pass.
      ...(wants ? [plus(this.now, seconds(1))] : []),
      atMost,
    );
    this.now = instant(Math.max(this.now + 1000, next));
  }

  /** Makes passes at this instant until one changes nothing. Returns how many did. */
  rest(atMost: number): number {
    let passes = 0;
    while (passes < atMost && this.#pass().acted) passes += 1;
    return passes;
  }

  /** Changes the departure of a node, as a person does. */
  edit(node: string, change: Partial<Departure>): void {
    this.departures = this.departures.map((one) =>
      one.node.name === node ? { ...one, ...change } : one,
    );
  }

  #pass(): { readonly verdict: Verdict; readonly wants: boolean; readonly acted: boolean } {
    const { nodes, policy, departures, gateAnswers } = this;
    const snapshot = {
      ...{ nodes, policies: [policy], departures, gateAnswers, badPolicies: [] },
      releaseAnswers: everyMachine,
    };
    const verdict = decide(snapshot, this.now);
    const acts = verdict.decisions.filter(({ kind }) => kind !== "Continue" && kind !== "Skip");
    const done = acts.filter((one) => this.#carryOut(one));
    return { verdict, wants: acts.length > 0, acted: done.length > 0 };
  }

  /** False if it has no effect yet. */
  #carryOut(decision: Decision): boolean {
    if (decision.kind === "Schedule") {
      const status = { phase: "Scheduled", timeline: [] } as const;
      const { order } = decision;
      const made = { uid: `${order.name}-${this.now}`, createdAt: this.now, resourceVersion: "1" };
      this.departures = [...this.departures, { ...order, ...made, hold: false, status }];
      return true;
    }
    if (decision.kind === "Forget") {
      this.departures = this.departures.filter(({ uid }) => uid !== decision.departure.uid);
      return true;
    }
    if (decision.kind !== "Move" && decision.kind !== "Note" && decision.kind !== "Begin") {
      return true;
    }
    const departure = this.departures.find(({ uid }) => uid === decision.departure.uid);
    if (departure === undefined) throw new Error(`${decision.departure.uid} is there`);
    if (decision.kind === "Move") {
      const { departAt, deadlineAt } = decision;
      this.moves.push({ node: departure.node.name, at: this.now });
      this.#replace({ ...departure, departAt, deadlineAt });
      return true;
    }
    if (decision.kind === "Begin" && this.#lags(departure.uid)) return false;
    const status = statusAfter(departure, { ...decision, at: this.now }) ?? departure.status;
    this.#replace({ ...departure, status });
    if (decision.kind !== "Begin") return true;
    this.begun.push({ departure, reason: decision.reason, at: this.now });
    this.#ends.push({ uid: departure.uid, at: instant(this.now + this.#options.drainMs()) });
    this.mostOut = Math.max(this.mostOut, this.#ends.length);
    return true;
  }

  #lags(uid: string): boolean {
    const since = this.#asked.get(uid) ?? this.now;
    this.#asked.set(uid, since);
    return this.now < since + (this.#options.lagMs ?? 0);
  }

  /** The node leaves, and a new one replaces it. */
  #end(uid: string): void {
    this.#ends.splice(
      this.#ends.findIndex((end) => end.uid === uid),
      1,
    );
    const departure = this.departures.find((one) => one.uid === uid);
    if (departure === undefined) throw new Error(`${uid} is there`);
    const over = { phase: "Ended", outcome: "Planned", endedAt: this.now } as const;
    this.#replace({ ...departure, status: { ...departure.status, ...over } });
    this.nodes = this.nodes.filter((node) => node.uid !== departure.node.uid);
    if (this.#options.replaces) this.#bear(0);
  }

  #replace(departure: Departure): void {
    this.departures = this.departures.map((one) => (one.uid === departure.uid ? departure : one));
  }

  #bear(ageMs: number): void {
    this.#born += 1;
    const born = aNode(`n${this.#born}`, { createdAt: instant(this.now - ageMs) });
    this.nodes = [...this.nodes, born];
  }
}
