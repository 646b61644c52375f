import type { BadPolicy, Policy } from "../../core/policy/policy.ts";
import { sentenceOf } from "../problem.ts";
import type { RuleWorld } from "../schema/field-schema.ts";
import { parsePolicyObject } from "./parse-policy-object.ts";

/**
 * Reads a DeparturePolicy of a cluster. The CRD keeps bad ones out, but an older one, or a newer
 * with values that this version does not know, may have let one in: it keeps its weight and its
 * selector, so that it stops its own nodes and no others.
 */
export function readClusterPolicy(
  object: unknown,
  world: RuleWorld,
): { readonly policy: Policy } | BadPolicy {
  const parsed = parsePolicyObject(object, { ...world, unknownFields: "Warn" });
  if ("policy" in parsed) return { policy: parsed.policy };
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
