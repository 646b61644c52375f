/**
 * What other tools have left on nodes: cordons, taints, labels, and the killer's deletion times.
 */
import { killerAnnotation } from "../core/cluster/node.ts";
import { allowedSpans } from "../core/limits/windows.ts";
import type { Policy } from "../core/policy/policy.ts";
import {
  coversInstant,
  formatInstant,
  hours,
  type Instant,
  instant,
  minus,
  minutes,
  parseInstant,
  plus,
} from "../core/time/time.ts";

/** The marks of a node. */
export interface MarkedNode {
  readonly name: string;
  readonly annotations: Readonly<Record<string, string>>;
  readonly labels: Readonly<Record<string, string>>;
  readonly taintKeys: readonly string[];
  readonly unschedulable: boolean;
  readonly createdAt: Instant | undefined;
  /** Whether a pod of the other tool runs on it. */
  readonly hasToolPod: boolean;
}

/** The current state of the other tool. */
export interface ToolState {
  /** Whether any pod of it is running, on any node. */
  readonly runs: boolean;
  /** How long it may still be working on a node whose time has come. */
  readonly busyMs: number;
}

/** What is removed from a node. */
export interface Leftover {
  readonly node: string;
  readonly uncordon: boolean;
  readonly taintKeys: readonly string[];
  readonly labels: readonly string[];
  readonly annotations: readonly string[];
}

/** What was found on a node: marks to remove, or a sentence about those that are kept. */
export type MarkFinding =
  | { readonly kind: "Leftover"; readonly leftover: Leftover }
  | { readonly kind: "Left"; readonly sentence: string };

/** Only a node with this annotation was cordoned by Lastcall, or is about to be. */
const ownAnnotation = "lastcall.dev/departure";

/** The killer cordons a node once its time has come, and never uncordons it. */
export function killerMarks(
  node: MarkedNode,
  tool: ToolState,
  now: Instant,
): readonly MarkFinding[] {
  const state = node.annotations[killerAnnotation];
  if (state === undefined) return [];
  const at = parseInstant(state);
  const leftover = (uncordon: boolean): MarkFinding => ({
    kind: "Leftover",
    // A running killer would choose a new random time for a node without its annotation.
    leftover: { ...none(node), uncordon, annotations: tool.runs ? [] : [killerAnnotation] },
  });
  if (!node.unschedulable || ownAnnotation in node.annotations) {
    return tool.runs ? [] : [leftover(false)];
  }
  const whose = left(node, "stays cordoned");
  if (at === undefined) {
    return [
      whose(
        `its annotation ${killerAnnotation} is not an instant, so the cordon may be a person's`,
      ),
    ];
  }
  if (at > now)
    return [
      whose(
        `the killer's instant ${formatInstant(at)} is in the future, so the cordon is a person's`,
      ),
    ];
  if (node.hasToolPod) return [whose("the killer's pod runs on it")];
  if (tool.runs && now - at < tool.busyMs) return [whose("the killer is working on it")];
  return [leftover(true)];
}

const handlerPrefix = "aws-node-termination-handler/";
const balancerLabel = "node.kubernetes.io/exclude-from-external-load-balancers";
const outOfServiceTaint = "node.kubernetes.io/out-of-service";

/** NTH's marks; a cordon without any of them may be somebody else's. */
export function handlerMarks(node: MarkedNode): readonly MarkFinding[] {
  const taintKeys = node.taintKeys.filter((key) => key.startsWith(handlerPrefix));
  const labels = Object.entries(node.labels).flatMap(([key, value]) => {
    const isBalancer = key === balancerLabel && value === "aws-node-termination-handler";
    return key.startsWith(handlerPrefix) || isBalancer ? [key] : [];
  });
  if (taintKeys.length + labels.length === 0) return [];
  const stays = left(node, "keeps NTH's marks");
  if (node.hasToolPod) return [stays("NTH's pod runs on it")];
  if (ownAnnotation in node.annotations) return [stays("Lastcall is draining it")];
  // NTH removes this one itself, and nothing runs on a node that has it.
  const alsoOut = node.taintKeys.filter((key) => key === outOfServiceTaint);
  return [
    {
      kind: "Leftover",
      leftover: {
        ...none(node),
        ...{ uncordon: node.unschedulable, taintKeys: [...taintKeys, ...alsoOut], labels },
      },
    },
  ];
}

function none({ name }: MarkedNode): Leftover {
  return { node: name, uncordon: false, taintKeys: [], labels: [], annotations: [] };
}

function left({ name }: MarkedNode, what: string) {
  return (why: string): MarkFinding => ({ kind: "Left", sentence: `${name} ${what}: ${why}` });
}

/** What would be removed, as a phrase: `the cordon, the taint a`. */
export function leftoverText({ uncordon, taintKeys, labels, annotations }: Leftover): string {
  const parts = [
    ...(uncordon ? ["the cordon"] : []),
    ...taintKeys.map((key) => `the taint ${key}`),
    ...labels.map((key) => `the label ${key}`),
    ...annotations.map((key) => `the annotation ${key}`),
  ];
  return parts.join(", ");
}

/** The killer's deletion time as that of a departure, or why it cannot be used. */
export type TakenOver =
  | { readonly kind: "Taken"; readonly departAt: Instant }
  | { readonly kind: "Planned"; readonly sentence: string };

/**
 * The time is usable between the policy's earliest instant and its deadline, in an open window, and
 * not in the past.
 */
export function takeOver(node: MarkedNode, policy: Policy, now: Instant): TakenOver | undefined {
  const state = node.annotations[killerAnnotation];
  const { maxMs, minMs, reserveMs } = policy.lifetime;
  if (state === undefined || node.createdAt === undefined || maxMs === undefined) return undefined;
  const planned = (why: string): TakenOver => ({
    kind: "Planned",
    sentence: `${node.name} gets a new instant from the plan: ${why}`,
  });
  const at = parseInstant(state);
  if (at === undefined) {
    return planned(
      `its annotation ${killerAnnotation} is ${JSON.stringify(state)}, which is not an instant`,
    );
  }
  const text = `the killer's ${formatInstant(at)}`;
  const earliestAt = plus(node.createdAt, minMs);
  const deadlineAt = minus(plus(node.createdAt, maxMs), reserveMs);
  if (at > deadlineAt) return planned(`${text} is past its deadline ${formatInstant(deadlineAt)}`);
  if (at < now) return planned(`${text} has passed`);
  if (at < earliestAt) return planned(`${text} is before it is ${minMs / hours(1)} hours old`);
  const open = allowedSpans(policy.windows, minus(at, hours(24)), plus(at, minutes(1)));
  if (!coversInstant(open, instant(at))) return planned(`${text} is in no Allow window`);
  return { kind: "Taken", departAt: at };
}
