import { nodeLabel, policyLabel } from "../../core/departure/departure-labels.ts";
import { departureSpec, departureStatus } from "./departure-schema.ts";
import {
  choiceField,
  conditionsField,
  type FieldSchema,
  instantField,
  type ObjectField,
  textField,
} from "./field-schema.ts";
import { policyDescription, policyKind } from "./policy-document.ts";
import { policySpec } from "./policy-schema.ts";

function counter(description: string): FieldSchema {
  return { type: "integer", description };
}

function seconds(description: string): FieldSchema {
  return { type: "number", description, nullable: true };
}

/** `DeparturePolicy.status`. */
const policyStatus: ObjectField = {
  type: "object",
  description: "What the controller has observed and planned.",
  properties: {
    observedGeneration: counter("The generation of the spec that this status describes."),
    paused: {
      type: "boolean",
      description: "Whether planned departures are paused by `paused: true`.",
    },
    matchedNodes: counter(
      "How many nodes the policy selects; if the policy is invalid, how many nodes it holds back.",
    ),
    departures: {
      type: "object",
      description: "The policy's departures.",
      properties: {
        scheduled: counter("Scheduled and not started."),
        underWay: counter("Started and not ended."),
        done24h: counter("Ended in the last 24 hours."),
      },
    },
    spacing: {
      type: "object",
      description: "The gap between departures; null if there are fewer than two.",
      properties: {
        wantedSeconds: seconds("What the policy asks for."),
        reachedSeconds: seconds("The smallest gap of the plan."),
        bestSeconds: seconds("The largest smallest gap that any plan could have."),
      },
    },
    forecast: {
      type: "object",
      description: "Whether the fleet can be rotated within these windows and budgets.",
      properties: {
        feasible: { type: "boolean", description: "Whether every node leaves in time." },
        late: {
          type: "list",
          description: "The nodes that do not leave in time.",
          items: { type: "string", description: "A node's name." },
        },
        widenBySeconds: seconds("How much longer each Allow window would have to be."),
        explain: textField({ description: "The reason in one sentence." }),
      },
    },
    waves: {
      type: "object",
      description: "The progress of the waves; absent if the policy has none.",
      properties: {
        state: choiceField({
          description:
            "`Halted`: by a departure that did not succeed; `Passed`: all departures of the waves have succeeded.",
          choices: ["UnderWay", "Passed", "Halted"],
        }),
        wave: counter("The wave that is under way, from 1 on."),
        of: counter("How many there are."),
        size: counter("How many departures it has."),
        succeeded: counter("How many of them have succeeded."),
        underWay: counter("How many of the policy's nodes are leaving now."),
        haltedBy: textField({ description: "The Departure that halts the waves." }),
      },
    },
    nextDepartureAt: instantField("When the next node leaves."),
    conditions: conditionsField(
      "`Ready`: the policy is valid, otherwise the message names the fields; `Feasible`: see `forecast`, and Unknown while it is paused or selects no node; `WavesPassed`: see `waves`; `SpotReady`: what the audit says of the workloads that can run on its nodes.",
    ),
  },
};

/**
 * The definition of a custom resource: everything that its CRD, its schema and its reference page
 * need.
 */
export interface ResourceDefinition {
  readonly kind: string;
  readonly plural: string;
  readonly singular: string;
  readonly shortName: string;
  readonly description: string;
  readonly spec: ObjectField;
  readonly status: ObjectField;
  readonly columns: readonly PrinterColumn[];
  /** For `kubectl get --field-selector`, which Kubernetes supports from 1.31 on. */
  readonly selectable: readonly string[];
  /** For `kubectl get -l`. */
  readonly labels: readonly string[];
}

/**
 * A column of `kubectl get`. Instants in the future are strings: of a `date`, the API server prints
 * the age, and `<invalid>` if it is ahead (ADR 0022).
 */
interface PrinterColumn {
  readonly name: string;
  readonly type: "string" | "integer" | "date" | "boolean";
  readonly jsonPath: string;
  readonly description: string;
  /** Greater than 0: only shown by `-o wide`. */
  readonly priority?: 1;
}

const age: PrinterColumn = {
  name: "Age",
  type: "date",
  jsonPath: ".metadata.creationTimestamp",
  description: "Time since it was created.",
};

export const policyDefinition: ResourceDefinition = {
  kind: policyKind,
  plural: "departurepolicies",
  singular: "departurepolicy",
  shortName: "dpol",
  description: policyDescription,
  spec: policySpec,
  status: policyStatus,
  columns: [
    column("Weight", "integer", ".spec.weight", "The policy with the highest weight applies."),
    column("Nodes", "integer", ".status.matchedNodes", "Nodes under this policy."),
    column("Scheduled", "integer", ".status.departures.scheduled", "Departures planned."),
    column("Underway", "integer", ".status.departures.underWay", "Departures begun."),
    column("Next", "string", ".status.nextDepartureAt", "When the next node leaves."),
    column("Paused", "boolean", ".spec.paused", "No planned departure starts."),
    column("Ready", "string", '.status.conditions[?(@.type=="Ready")].status', "Understood."),
    column("Feasible", "string", '.status.conditions[?(@.type=="Feasible")].status', "In time."),
    age,
  ],
  selectable: [],
  labels: [],
};

const outcome =
  "How it ended, empty until then; Planned: it left as planned or requested, and every pod was evicted.";

const departureDefinition: ResourceDefinition = {
  kind: "Departure",
  plural: "departures",
  singular: "departure",
  shortName: "dep",
  description: "The departure of one node, planned or forced, from schedule to outcome.",
  spec: departureSpec,
  status: departureStatus,
  columns: [
    column("Node", "string", ".spec.node.name", "The node that leaves."),
    column("Cause", "string", ".spec.cause", "Why."),
    column("Phase", "string", ".status.phase", "The current phase."),
    column("Departs", "string", ".spec.departAt", "When it starts."),
    column("Deadline", "string", ".spec.deadlineAt", "When the machine may be gone."),
    column("Pods", "integer", ".status.drain.left", "Pods still on the node."),
    column("Ended As", "string", ".status.outcome", outcome),
    age,
    wide(column("Ended", "date", ".status.endedAt", "Time since it ended; empty until then.")),
    wide(column("Policy", "string", ".spec.policy", "The policy that applies.")),
    wide(column("Reason", "string", ".status.reason", "The reason for its phase.")),
    wide(column("Message", "string", ".status.message", "The reason in one sentence.")),
  ],
  selectable: [
    ".spec.node.name",
    ".spec.cause",
    ".spec.policy",
    ".status.phase",
    ".status.outcome",
    ".status.policy",
  ],
  labels: [nodeLabel, policyLabel],
};

export const resourceDefinitions: readonly ResourceDefinition[] = [
  policyDefinition,
  departureDefinition,
];

function column(
  name: string,
  type: PrinterColumn["type"],
  ...[jsonPath, description]: readonly [jsonPath: string, description: string]
): PrinterColumn {
  return { name, type, jsonPath, description };
}

function wide(one: PrinterColumn): PrinterColumn {
  return { ...one, priority: 1 };
}
