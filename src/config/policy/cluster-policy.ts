import type { BadPolicy, Policy } from "../../core/policy/policy.ts";
import { sentenceOf } from "../problem.ts";
import type { RuleWorld } from "../schema/field-schema.ts";
import { parsePolicyObject } from "./parse-policy-object.ts";

interface ClusterPolicy {
  readonly policy: Policy;
  /** What a person should know of it, such as a field of a newer version: one sentence each. */
  readonly remarks: readonly string[];
}

/**
 * Reads a DeparturePolicy of a cluster. The CRD keeps bad ones out, but an older one, or a newer
 * with values that this version does not know, may have let one in: it keeps its weight and its
 * selector, so that it stops its own nodes and no others.
 */
export function readClusterPolicy(object: unknown, world: RuleWorld): ClusterPolicy | BadPolicy {
  const parsed = parsePolicyObject(object, { ...world, unknownFields: "Warn" });
  if ("policy" in parsed) {
    return { policy: parsed.policy, remarks: parsed.warnings.map(({ text }) => text) };
  }
  const { name, generation, uid } = metadataOf(object);
  return {
    name: typeof name === "string" ? name : "",
    problem: parsed.problems.map(sentenceOf).join("; "),
    ...parsed.claim,
    ...(typeof generation === "number" && { generation }),
    ...(typeof uid === "string" && { uid }),
  };
}

function metadataOf(object: unknown): Readonly<Record<string, unknown>> {
  return (object as { readonly metadata?: Readonly<Record<string, unknown>> }).metadata ?? {};
}
