import { departureSpec, departureStatus } from "./departure-schema.ts";
import type { ObjectField } from "./field-schema.ts";
import { policySpec } from "./policy-schema.ts";
import { policyStatus } from "./policy-status-schema.ts";

export const apiGroup = "lastcall.dev";
export const apiVersion = "v1alpha1";

/** One kind of ours: everything that its CRD, its schema and its reference page need. */
export interface ResourceDefinition {
  readonly kind: string;
  readonly plural: string;
  readonly singular: string;
  readonly shortName: string;
  readonly description: string;
  readonly spec: ObjectField;
  readonly status: ObjectField;
  readonly columns: readonly PrinterColumn[];
}

/** A column of `kubectl get`. Instants ahead are strings: kubectl prints a `date` as an age. */
export interface PrinterColumn {
  readonly name: string;
  readonly type: "string" | "integer" | "date" | "boolean";
  readonly jsonPath: string;
  readonly description: string;
}

const age: PrinterColumn = {
  name: "Age",
  type: "date",
  jsonPath: ".metadata.creationTimestamp",
  description: "Time since it was created.",
};

export const policyDefinition: ResourceDefinition = {
  kind: "DeparturePolicy",
  plural: "departurepolicies",
  singular: "departurepolicy",
  shortName: "dpol",
  description: "Which nodes leave, when, how many at once, and how they are drained.",
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
};

const departureDefinition: ResourceDefinition = {
  kind: "Departure",
  plural: "departures",
  singular: "departure",
  shortName: "dep",
  description: "One node's leaving, planned or forced, from schedule to outcome.",
  spec: departureSpec,
  status: departureStatus,
  columns: [
    column("Node", "string", ".spec.node.name", "The node that leaves."),
    column("Cause", "string", ".spec.cause", "Why."),
    column("Phase", "string", ".status.phase", "Where it is."),
    column("Departs", "string", ".spec.departAt", "When it begins."),
    column("Deadline", "string", ".spec.deadlineAt", "When the machine may be gone."),
    column("Pods", "integer", ".status.drain.left", "Pods still on the node."),
    column("Outcome", "string", ".status.outcome", "How it ended."),
    age,
  ],
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
