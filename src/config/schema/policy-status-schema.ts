import type { FieldSchema, ObjectField } from "./field-schema.ts";
import { choiceField, conditionsField, instantField, textField } from "./scalar-field.ts";

function counter(description: string): FieldSchema {
  return { type: "integer", description };
}

function seconds(description: string): FieldSchema {
  return { type: "number", description, nullable: true };
}

/** `DeparturePolicy.status`. */
export const policyStatus: ObjectField = {
  type: "object",
  description: "What the controller has observed and planned.",
  properties: {
    observedGeneration: counter("The generation of the spec that this status describes."),
    paused: {
      type: "boolean",
      description: "Whether no planned departure starts, because the policy says `paused: true`.",
    },
    matchedNodes: counter(
      "How many nodes the policy selects; if the policy is invalid, how many nodes it holds back.",
    ),
    departures: {
      type: "object",
      description: "Its departures.",
      properties: {
        scheduled: counter("Scheduled and not started."),
        underWay: counter("Started and not ended."),
        done24h: counter("Ended in the last 24 hours."),
      },
    },
    spacing: {
      type: "object",
      description: "The gap between departures; null where there are fewer than two.",
      properties: {
        wantedSeconds: seconds("What the policy asks for."),
        reachedSeconds: seconds("The smallest gap of the plan."),
        bestSeconds: seconds("The largest smallest gap that any plan could have."),
      },
    },
    forecast: {
      type: "object",
      description: "Whether the fleet can be rotated in these windows and budgets.",
      properties: {
        feasible: { type: "boolean", description: "Whether every node leaves in time." },
        late: {
          type: "list",
          description: "The nodes that do not.",
          items: { type: "string", description: "A node's name." },
        },
        widenBySeconds: seconds("How much longer each Allow window would have to be."),
        explain: textField({ description: "The same in one sentence." }),
      },
    },
    waves: {
      type: "object",
      description: "How far the waves have come; absent where the policy has none.",
      properties: {
        state: choiceField({
          description:
            "`Halted` by a departure that ended badly, `Passed` when all have left well.",
          choices: ["UnderWay", "Passed", "Halted"],
        }),
        wave: counter("The wave that is under way, from 1 on."),
        of: counter("How many there are."),
        size: counter("How many departures it has."),
        leftWell: counter("How many of them have ended well."),
        underWay: counter("How many of the policy's nodes are leaving now."),
        haltedBy: textField({ description: "The Departure that halts them." }),
      },
    },
    nextDepartureAt: instantField("When the next node leaves."),
    conditions: conditionsField(
      "`Ready`: the policy is valid, otherwise the message names the fields; `Feasible`: see `forecast`, and Unknown while it is paused; `WavesPassed`: see `waves`; `SpotReady`: what the audit says of the workloads that can run on its nodes.",
    ),
  },
};
