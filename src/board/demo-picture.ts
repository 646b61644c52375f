/**
 * What the demo shows above its board at one instant, in a terminal and in a browser: two fleets
 * with the same fate, one with Lastcall and one without.
 */

import { allOf, counted, isOrAre, wasOrWere } from "../core/reason/counted.ts";
import { between, type Instant } from "../core/time/time.ts";
import type { FleetFigures } from "./stream.ts";

export interface DemoPicture {
  readonly now: Instant;
  readonly startedAt: Instant;
  readonly seed: number;
  /** How many times faster than real time the model is running, and why. */
  readonly speed: number;
  readonly moment: Moment;
  readonly paused: boolean;
  /** Paused by the page of a node, until it is left. */
  readonly isReading: boolean;
  readonly story: Story;
  /** The audit's verdict on the workloads of each policy's nodes; none until the first audit. */
  readonly audits: readonly string[];
  /** By name. */
  readonly nodes: readonly BoardNode[];
  /** How many there are in addition to `nodes`, in a large fleet in a browser. */
  readonly unseen?: number | undefined;
  /** The notice in Lastcall's fleet, while it is running and shortly after. */
  readonly notice?: BoardNotice | undefined;
  readonly withLastcall: FleetFigures;
  readonly without: FleetFigures;
}

/** What is on screen, as far as it determines the speed. */
export type Moment =
  | "Opening"
  | "Notice"
  | "Aftermath"
  | "Departure"
  | "Losses"
  | "Soon"
  | "Quiet"
  | "Skipping";

/**
 * The commands that a person can give the demo. `Read` and `ReadOn`: the page of a node was opened
 * or left, which have no key of their own.
 */
export type DemoKey = "Pause" | "Faster" | "Slower" | "NextEvent" | "Interrupt" | "Read" | "ReadOn";

const demoKeys: Readonly<Record<string, DemoKey>> = {
  " ": "Pause",
  p: "Pause",
  "+": "Faster",
  "=": "Faster",
  "-": "Slower",
  n: "NextEvent",
  i: "Interrupt",
};

/** The command of a key, in a terminal and in a browser. */
export function demoKeyOf(key: string): DemoKey | undefined {
  return demoKeys[key.toLowerCase()];
}

/** The current chapter of the demo's story. */
export type Story =
  | { readonly kind: "Together"; readonly nodes: number; readonly limitAt: Instant }
  | { readonly kind: "Notice"; readonly node: string }
  | {
      readonly kind: "NoticeOver";
      readonly node: string;
      readonly podsKilled: number;
      readonly podsKilledWithout: number;
      readonly pods: number;
    }
  | {
      readonly kind: "OneByOne";
      readonly nodes: number;
      /** Of the machines that were launched together, how many have not left yet. */
      readonly nodesLeft: number;
      readonly limitAt: Instant;
    }
  | { readonly kind: "Limit"; readonly nodesLost: number; readonly nodesLeft: number }
  | {
      readonly kind: "Result";
      readonly withLastcall: FleetFigures;
      readonly without: FleetFigures;
    };

/** A place in the fleet: its machine, and what that is doing. */
export interface BoardNode {
  readonly name: string;
  readonly bornAt: Instant;
  readonly doing: DemoMachineState;
  /** The machine at the same place in the fleet without Lastcall. */
  readonly twin?: { readonly bornAt: Instant; readonly doing: DemoMachineState } | undefined;
}

/** `Taken`: it has its notice. `Leaving`: its departure is under way. `Gone`: it is off. */
export type DemoMachineState = "Working" | "Leaving" | "Taken" | "Gone" | "Booting";

/** One machine's notice: its pods against its clock. */
export interface BoardNotice {
  readonly node: string;
  readonly noticedAt: Instant;
  /** When the machine is shut down, whatever its pods are doing. */
  readonly deadlineAt: Instant;
  /** When it was powered off. */
  readonly goneAt?: Instant | undefined;
  readonly pods: readonly BoardPod[];
  /** The pods of the same machine in the fleet without Lastcall; absent if it is not preempted. */
  readonly twinPods?: readonly BoardPod[] | undefined;
}

export interface BoardPod {
  readonly name: string;
  /** When its termination started, and when it ended. */
  readonly terminatingAt?: Instant | undefined;
  readonly endedAt?: Instant | undefined;
  /** It was killed before its program had ended. */
  readonly isKilled?: boolean | undefined;
}

/** The story in a sentence or two; `span` formats a duration for its reader. */
export function storyText(story: Story, now: Instant, span: (ms: number) => string): string {
  switch (story.kind) {
    case "Together":
      return `Two fleets of ${counted(story.nodes, "Spot node")}, launched together. At 24 h, in ${span(between(now, story.limitAt))}, the cloud interrupts those left; with Lastcall they leave before, one by one.`;
    case "Notice":
      return `The cloud interrupts ${story.node} in both fleets. With Lastcall its pods leave during the notice; without, they keep running until the shutdown.`;
    case "NoticeOver":
      return `${story.node} is gone. Without Lastcall ${killedText(story.podsKilledWithout)}; with Lastcall ${savedText(story)}.`;
    case "OneByOne":
      return `${leavingText(story)}. Without, those left wait for their 24 h, in ${span(between(now, story.limitAt))}.`;
    case "Limit":
      return `24 h: without Lastcall the cloud interrupts node after node, ${story.nodesLost} within one hour so far. With Lastcall ${story.nodesLeft === 0 ? "all had left before" : `${story.nodesLeft} had not left yet`}.`;
    case "Result":
      return `Without Lastcall ${lossText(story.without)}. With Lastcall ${lossText(story.withLastcall)}.`;
  }
}

function leavingText({ nodes, nodesLeft }: Extract<Story, { kind: "OneByOne" }>): string {
  if (nodesLeft === 0)
    return `With Lastcall ${allOf(nodes, "node")} ${nodes > 1 ? "have" : "has"} left one by one, drained and replaced`;
  const left = `${nodesLeft} of ${nodes} ${isOrAre(nodesLeft)} still to go`;
  return `With Lastcall nodes leave one by one, drained and replaced: ${left}`;
}

function savedText({ pods, podsKilled }: Extract<Story, { kind: "NoticeOver" }>): string {
  if (podsKilled > 0) return killedText(podsKilled);
  if (pods === 0) return "it had no pods";
  if (pods === 1) return "its pod had terminated in time";
  return `${pods === 2 ? "both" : `all ${pods}`} had terminated in time`;
}

function lossText({ lostAtLimit, lostAtOnce, podsKilled }: FleetFigures): string {
  const killed = killedText(podsKilled);
  if (lostAtOnce === 0) return `no node was lost, and ${killed}`;
  if (lostAtLimit === 0) {
    return `no node reached 24 h (up to ${lostAtOnce} within one hour ${wasOrWere(lostAtOnce)} interrupted early), and ${killed}`;
  }
  // Otherwise more seem to be lost within one hour than altogether.
  const early = lostAtOnce > lostAtLimit ? ", including early ones" : "";
  const lost = `${counted(lostAtLimit, "node")} ${wasOrWere(lostAtLimit)} lost at 24 h`;
  return `${lost} (up to ${lostAtOnce} within one hour${early}), and ${killed}`;
}

function killedText(pods: number): string {
  if (pods === 0) return "no pod was killed";
  return `${counted(pods, "pod")} ${wasOrWere(pods)} killed`;
}
