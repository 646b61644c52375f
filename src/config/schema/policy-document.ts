import type { ObjectField, StringField } from "./field-schema.ts";
import { policySpec } from "./policy-schema.ts";

export const apiGroup = "lastcall.dev";
export const apiVersion = "v1alpha1";

export const policyKind = "DeparturePolicy";
export const policyDescription =
  "Which nodes leave, when, how many at once, and how they are drained.";

/** The name of an object, as the API server accepts it. */
const metadataSchema: ObjectField = {
  type: "object",
  description: "The usual metadata; the resource is cluster-scoped, so there is no namespace.",
  required: ["name"],
  open: true,
  properties: {
    name: {
      type: "string",
      description: "Its name.",
      pattern: "^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
      maxLength: 253,
      wanted: "a name of lower case letters, digits, dashes and dots",
    },
  },
};

function oneOf(value: string): StringField {
  return { type: "string", description: "", enum: [value] };
}

/**
 * The whole object of a policy, in the notation of its fields. Apart from the definitions of both
 * resources, because the page of the board checks policies and has no use for the rest.
 */
export const policyDocument: ObjectField = {
  type: "object",
  description: policyDescription,
  required: ["apiVersion", "kind", "metadata", "spec"],
  properties: {
    apiVersion: oneOf(`${apiGroup}/${apiVersion}`),
    kind: oneOf(policyKind),
    metadata: metadataSchema,
    spec: policySpec,
    status: { type: "object", description: "Written by Lastcall.", properties: {}, open: true },
  },
};
