import type { FleetView } from "../contracts/fleet.ts";
import type { KubeObject } from "../contracts/kube-api.ts";
import { type Departure, isNoticed, isUnderWay } from "../core/departure/departure.ts";
import type { FleetPlan, PlanInput } from "../core/plan/fleet-plan.ts";
import { planFleet } from "../core/plan/plan.ts";
import type { ReleaseAnswer, ReleaseAnswers } from "../core/policy/release-answer.ts";
import type { Instant } from "../core/time/time.ts";
import { boardRows } from "./board-row.ts";
import { policyCards } from "./picture.ts";
import type { BoardRow, PolicyCard } from "./stream.ts";

/** All that a page needs to plan the fleet itself: what `/api/what-if` answers. */
export interface WhatIfFacts extends Pick<FleetView, "nodes" | "departures"> {
  readonly at: Instant;
  /** As they are written in the cluster, so that a person reads and edits their own text. */
  readonly policies: readonly PolicyText[];
  readonly releaseAnswers: readonly (readonly [uid: string, answer: ReleaseAnswer])[];
}

export interface PolicyText {
  readonly apiVersion: "lastcall.dev/v1alpha1";
  readonly kind: "DeparturePolicy";
  readonly metadata: { readonly name: string };
  readonly spec: unknown;
}

interface FactSources {
  readonly view: Pick<FleetView, "nodes" | "departures">;
  /** The DeparturePolicy objects of the cluster. */
  readonly policies: readonly KubeObject[];
  readonly releaseAnswers: ReleaseAnswers;
  readonly at: Instant;
}

export function whatIfFacts({ view, policies, releaseAnswers, at }: FactSources): WhatIfFacts {
  return {
    at,
    nodes: view.nodes,
    departures: view.departures.map(withoutActions),
    policies: policies.map(({ metadata, spec = {} }) => ({
      apiVersion: "lastcall.dev/v1alpha1",
      kind: "DeparturePolicy",
      metadata: { name: metadata?.name ?? "" },
      spec,
    })),
    releaseAnswers: [...releaseAnswers],
  };
}

/** No plan reads them, and what it takes to undo them is nobody's to see here. */
function withoutActions({ status, ...departure }: Departure): Departure {
  const { actions: _, ...rest } = status;
  return { ...departure, status: rest };
}

/** What the timeline would show under other policies. */
export interface SupposedPicture {
  readonly plan: FleetPlan;
  readonly rows: readonly BoardRow[];
  readonly policies: readonly PolicyCard[];
}

/**
 * The plan that these policies would have now. Of a planned departure that has not begun the plan's
 * instant is shown, not the one that its Departure still has.
 */
export function supposedPicture(
  facts: WhatIfFacts,
  policies: Pick<PlanInput, "policies" | "badPolicies">,
): SupposedPicture {
  const { nodes, departures, at } = facts;
  const releaseAnswers = new Map(facts.releaseAnswers);
  const plan = planFleet({ ...policies, nodes, departures, releaseAnswers, at });
  const settled = departures.filter(
    (one) => one.cause !== "Planned" || isUnderWay(one) || isNoticed(one),
  );
  return {
    plan,
    rows: boardRows({ ...policies, nodes, departures: settled }, plan),
    policies: policyCards(plan, at),
  };
}
