import type { ActionState, Outcome, Phase, UncleanPod } from "../../core/departure/departure.ts";
import { conditionsOf } from "../../core/departure/departure-conditions.ts";
import { causes } from "../../core/policy/action.ts";
import {
  choiceField,
  conditionsField,
  type FieldSchema,
  instantField,
  type ObjectField,
  switchField,
  textField,
  wordsOf,
} from "./field-schema.ts";

const node: ObjectField = {
  type: "object",
  description:
    "The node that leaves. Its name alone does not identify it, because managed groups reuse names.",
  required: ["name", "uid"],
  properties: {
    name: {
      type: "string",
      description: "The Node's name.",
      minLength: 1,
      maxLength: 253,
      wanted: "the Node's name",
    },
    uid: {
      type: "string",
      description: "The Node's `metadata.uid`.",
      minLength: 1,
      maxLength: 128,
      wanted: "the Node's metadata.uid",
    },
    providerID: textField({ description: "The Node's `spec.providerID`.", maxLength: 1024 }),
    bootID: textField({ description: "The Node's `status.nodeInfo.bootID`.", maxLength: 128 }),
  },
  rules: [{ cel: "self == oldSelf", wanted: "the node that the departure was created for" }],
};

/** `Departure.spec`. */
export const departureSpec: ObjectField = {
  type: "object",
  description: "The departure of one node, planned or forced.",
  required: ["node", "cause"],
  properties: {
    node,
    cause: choiceField({
      description: "Why it leaves. A notice turns a planned departure into a forced one.",
      choices: causes,
    }),
    departAt: instantField("When it is to start; if not set, immediately."),
    deadlineAt: instantField(
      "After this instant the machine may be gone. Once noticed it only ever moves earlier.",
    ),
    launchedAt: instantField(
      "When the machine was launched, from which a planned deadline counts; only if the cloud reports it.",
    ),
    noticedAt: instantField("When the notice was received."),
    withdrawnAt: instantField("When the cloud withdrew its notice: the departure is cancelled."),
    source: textField({
      description: "What created it: the planner, an agent, a queue or a user.",
      maxLength: 253,
    }),
    policy: textField({ description: "The policy that it follows.", maxLength: 253 }),
    hold: switchField(
      "Set by a user: the departure waits while this is set, unless there is a notice.",
    ),
  },
  rules: [
    {
      cel: "!has(oldSelf.noticedAt) || !has(oldSelf.deadlineAt) || (has(self.deadlineAt) && self.deadlineAt <= oldSelf.deadlineAt)",
      at: "deadlineAt",
      wanted: "a deadline no later than the previous one",
    },
  ],
};

function counter(description: string): FieldSchema {
  return { type: "integer", description };
}

const drain: ObjectField = {
  type: "object",
  description: "Progress of the drain, in pods.",
  properties: {
    total: counter("Pods to evict in total."),
    left: counter("Pods still on the node."),
    evicted: counter("Pods evicted."),
    forced: counter("Pods deleted regardless of a budget."),
    waiting: counter("Pods terminating within their grace period."),
    blocked: counter("Pods blocked by a budget or an annotation."),
    cut: counter("Pods with a truncated grace period."),
    activeSeconds: counter(
      "Seconds in which the drain could act: the timeout does not count the time without a leader or without the API server.",
    ),
    waitSeconds: counter(
      "The longest wait of a WaitCompleted rule for a pod of this drain, in seconds: it extends the timeout, also once that pod has completed.",
    ),
    cleanExit: counter("Pods terminated before their grace period ended."),
    killed: counter("Pods killed at the end of their grace period."),
    leftBehind: counter("Pods still on the node when the drain ended."),
    notClean: {
      type: "list",
      description: "The first pods that were killed or left behind.",
      items: {
        type: "object",
        description: "One pod.",
        required: ["namespace", "name", "outcome"],
        properties: {
          namespace: textField({ description: "Its namespace." }),
          name: textField({ description: "Its name." }),
          outcome: choiceField({
            description: "How it ended.",
            choices: wordsOf<UncleanPod["outcome"]>({ Killed: true, LeftBehind: true }),
          }),
          rule: textField({
            description: "The rule of `lastcall audit` that predicts such an end.",
          }),
        },
      },
    },
    forcedPods: {
      type: "list",
      description: "The first pods that were deleted without the eviction API.",
      items: {
        type: "object",
        description: "One pod.",
        required: ["namespace", "name", "reason"],
        properties: {
          namespace: textField({ description: "Its namespace." }),
          name: textField({ description: "Its name." }),
          reason: textField({ description: "The reason; see docs/drain.md." }),
        },
      },
    },
  },
};

const actions: FieldSchema = {
  type: "list",
  description: "The actions of the departure, in the order of the policy.",
  items: {
    type: "object",
    description: "One action.",
    required: ["name", "at", "state"],
    properties: {
      name: textField({ description: "Its name in the policy." }),
      kind: textField({ description: "The action's type in the policy." }),
      at: textField({ description: "When it is due." }),
      state: choiceField({
        description:
          "The action's state. `Skipped`: it does not apply to this departure; `Undone`: its change was reverted.",
        choices: wordsOf<ActionState>({
          Pending: true,
          Running: true,
          Done: true,
          Failed: true,
          Undone: true,
          Skipped: true,
        }),
      }),
      startedAt: instantField("When its first attempt started."),
      seconds: { type: "number", description: "How long all attempts took." },
      attempts: counter("How many attempts there were."),
      result: textField({ description: "`Done`, `Undone`, or an error code; see docs/errors.md." }),
      detail: textField({ description: "Details in one sentence." }),
      undo: {
        type: "object",
        description: "What is needed to undo the action; written before its first change.",
        properties: {},
        open: true,
      },
      reference: textField({ description: "The receiver's identifier of the message." }),
    },
  },
};

/**
 * A departure is scheduled before the controller has written its status, and `kubectl wait` finds
 * its conditions. A default of the list alone would also apply to a status without conditions that
 * an old version wrote, perhaps of a departure that has ended.
 */
const unwritten = {
  phase: "Scheduled",
  conditions: conditionsOf({ phase: "Scheduled", timeline: [] }).map(
    ({ lastTransitionTime: _, ...condition }) => condition,
  ),
} as const;

/** `Departure.status`. */
export const departureStatus: ObjectField = {
  type: "object",
  description: "The observed state of the departure.",
  default: unwritten,
  properties: {
    phase: choiceField({
      description: "The current phase.",
      default: "Scheduled",
      choices: wordsOf<Phase>({
        Scheduled: true,
        Held: true,
        Preparing: true,
        Draining: true,
        Releasing: true,
        RollingBack: true,
        Ended: true,
      }),
    }),
    outcome: choiceField({
      description:
        "How the departure ended; set once, and never changed. `Planned` is an end as well: it left as planned or requested, and every pod was evicted.",
      choices: wordsOf<Outcome>({
        Planned: true,
        Preempted: true,
        Forced: true,
        Expired: true,
        RolledBack: true,
        Cancelled: true,
        Failed: true,
      }),
    }),
    reason: textField({ description: "The reason for the current phase; see docs/glossary.md." }),
    message: textField({ description: "The reason in one sentence." }),
    startedAt: instantField("When it started and the node was marked."),
    endedAt: instantField("When it ended."),
    nodeCreatedAt: instantField("The Node's `creationTimestamp`."),
    machine: {
      type: "object",
      description: "The machine, recorded just before its release.",
      properties: {
        id: textField({ description: "The id that its cloud or its owner gave it." }),
        mode: textField({ description: "How it is released: a value of instance.release." }),
        providerID: textField({ description: "The `spec.providerID` of its Node." }),
      },
    },
    releasingSeconds: counter(
      "Seconds for which the release has been tried, once something has failed: instance.awaitMachine does not count the time without a leader or without the API server.",
    ),
    drain,
    demands: {
      type: "list",
      description:
        "The disruptions that the drain needs from budgets that other drains may need too, until its pods are gone. While it is held for another drain, those that it would need.",
      items: {
        type: "object",
        description: "One PodDisruptionBudget.",
        required: ["budget", "pods", "disruptionsAllowed"],
        properties: {
          budget: textField({ description: "Its namespace and name." }),
          pods: counter("How many of its pods are on the node."),
          disruptionsAllowed: counter(
            "How many it allowed to be unavailable when the drain started.",
          ),
        },
      },
    },
    actions,
    policy: textField({
      description:
        "The policy that it follows, where the spec of a departure that a notice made names none, or that its actions and its lifecycle hook follow; recorded because the node may be gone by then.",
    }),
    leftTo: textField({
      description:
        "Another tool that is removing the node; the departure waits for it, or has ended meanwhile.",
    }),
    timeline: {
      type: "list",
      description: "What happened, and when.",
      items: {
        type: "object",
        description: "One step.",
        required: ["at", "step"],
        properties: {
          at: instantField("When."),
          step: textField({ description: "What was done." }),
          result: textField({ description: "The result." }),
        },
      },
    },
    conditions: conditionsField(
      "`Scheduled`: it waits for its instant; `Held`: something holds it back; `Draining`; `Drained`: no pods remained at the end of the drain; `Released`: its machine ended after the drain; `Ended`. All have a status from the start, and the time of their last change once the controller has written one.",
    ),
  },
  rules: [
    {
      cel: "has(self.outcome) == (has(self.phase) && self.phase == 'Ended')",
      at: "outcome",
      wanted: "one outcome with the phase Ended, and none before",
    },
    {
      cel: "!has(oldSelf.outcome) || (has(self.outcome) && self.outcome == oldSelf.outcome)",
      at: "outcome",
      wanted: "the outcome with which it ended",
    },
  ],
};
