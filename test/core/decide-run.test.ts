import { expect, it } from "vitest";
import { decide } from "../../src/core/decide.ts";
import type { Decision } from "../../src/core/decision.ts";
import type { Departure } from "../../src/core/departure.ts";
import { statusAfter } from "../../src/core/ledger.ts";
import type { NodeFacts } from "../../src/core/node.ts";
import type { Policy, Window } from "../../src/core/policy.ts";
import { type Rng, seededRng } from "../../src/core/rng.ts";
import { hours, type Instant, instant, minutes, plus, seconds } from "../../src/core/time.ts";
import { allowedSpans } from "../../src/core/windows.ts";
import { aNode, aPolicy, at, daily } from "./fleet-builder.ts";

/** A fleet whose nodes leave as core decides, in virtual time; everything else stands still. */
class DecideRun {
  now: Instant = at("2026-11-20T12:00:00Z");
  readonly policy: Policy;
  readonly moves: { readonly node: string; readonly at: Instant }[] = [];
  readonly begun: { readonly departure: Departure; readonly reason: string; at: Instant }[] = [];
  #nodes: NodeFacts[] = [];
  #departures: Departure[] = [];
  readonly #ends: { readonly uid: string; readonly at: Instant }[] = [];
  readonly #rng: Rng;
  #born = 0;

  constructor(seed: number) {
    this.#rng = seededRng(seed);
    const windows: readonly (readonly Window[])[] = [
      [],
      [daily("22:00-06:00")],
      [daily("09:00-12:00", { type: "Deny" })],
    ];
    const budgets: readonly Policy["budgets"][] = [
      [],
      [{ kind: "PerHour", perHour: 3 }],
      [{ kind: "Nodes", scope: "Policy", nodes: { count: 1 } }],
    ];
    this.policy = aPolicy({
      windows: windows[this.#upTo(2)] ?? [],
      budgets: budgets[this.#upTo(2)] ?? [],
      spacing: { mode: this.#upTo(1) === 0 ? "Late" : "Even", minMs: minutes(5 + this.#upTo(25)) },
    });
    for (let left = 4 + this.#upTo(16); left > 0; left -= 1) this.#bear(this.#upTo(hours(20)));
  }

  /** One look and what follows from it; then on to the next instant at which something is to do. */
  step(): void {
    for (const { uid } of this.#ends.filter((end) => end.at <= this.now)) this.#end(uid);
    const snapshot = { nodes: this.#nodes, policies: [this.policy], departures: this.#departures };
    const verdict = decide({ ...snapshot, badPolicies: [], gateAnswers: {} }, this.now);
    for (const decision of verdict.decisions) this.#carryOut(decision);
    const acted = verdict.decisions.some((one) => one.kind !== "Continue" && one.kind !== "Leave");
    const next = Math.min(
      verdict.askAgainAt ?? Number.POSITIVE_INFINITY,
      ...this.#ends.map((end) => end.at),
      // What it has written itself makes the controller look again.
      ...(acted ? [plus(this.now, seconds(1))] : []),
    );
    this.now = instant(Math.max(this.now + 1000, next));
  }

  #carryOut(decision: Decision): void {
    if (decision.kind === "Schedule") {
      const status = { phase: "Scheduled", timeline: [] } as const;
      const { order } = decision;
      const uid = `${order.name}-${this.now}`;
      this.#departures.push({ ...order, uid, resourceVersion: "1", hold: false, status });
      return;
    }
    if (decision.kind !== "Move" && decision.kind !== "Note" && decision.kind !== "Begin") return;
    const place = this.#departures.findIndex(({ uid }) => uid === decision.departure.uid);
    const departure = this.#departures[place] as Departure;
    if (decision.kind === "Move") {
      const { departAt, deadlineAt } = decision;
      this.moves.push({ node: departure.node.name, at: this.now });
      this.#departures[place] = { ...departure, departAt, deadlineAt };
      return;
    }
    const status = statusAfter(departure, { ...decision, at: this.now }) ?? departure.status;
    this.#departures[place] = { ...departure, status };
    if (decision.kind !== "Begin") return;
    this.begun.push({ departure, reason: decision.reason, at: this.now });
    this.#ends.push({ uid: departure.uid, at: plus(this.now, minutes(2 + this.#upTo(6))) });
  }

  /** The node has left, and a new one comes in its place. */
  #end(uid: string): void {
    this.#ends.splice(
      this.#ends.findIndex((end) => end.uid === uid),
      1,
    );
    const departure = this.#departures.find((one) => one.uid === uid);
    this.#departures = this.#departures.map((one) =>
      one.uid === uid
        ? {
            ...one,
            status: { ...one.status, phase: "Ended", outcome: "Planned", endedAt: this.now },
          }
        : one,
    );
    this.#nodes = this.#nodes.filter((node) => node.uid !== departure?.node.uid);
    this.#bear(0);
  }

  #bear(ageMs: number): void {
    this.#born += 1;
    this.#nodes.push(aNode(`n${this.#born}`, { createdAt: instant(this.now - ageMs) }));
  }

  #upTo(most: number): number {
    return Math.floor(this.#rng() * (most + 1));
  }
}

it.each(Array.from({ length: 40 }, (_, seed) => [seed]))(
  "a fleet that leaves as it is decided keeps windows and deadlines, and no node is moved about: seed %i",
  (seed) => {
    const run = new DecideRun(seed);
    const endAt = plus(run.now, hours(48));
    while (run.now < endAt) run.step();
    expect(run.begun.length).toBeGreaterThan(4);
    for (const { departure, reason, at: begunAt } of run.begun) {
      const { deadlineAt = begunAt } = departure;
      const open = allowedSpans(run.policy.windows, begunAt, plus(begunAt, seconds(1))).length > 0;
      expect(reason === "DeadlineForces" ? begunAt >= deadlineAt : open, departure.name).toBe(true);
      expect(begunAt, departure.name).toBeLessThanOrEqual(plus(deadlineAt, minutes(2)));
    }
    for (const { node, at: movedAt } of run.moves) {
      const since = plus(movedAt, minutes(-1));
      const lately = run.moves.filter((one) => one.node === node && one.at > since);
      expect(lately.filter((one) => one.at <= movedAt).length, node).toBeLessThan(5);
    }
  },
);
