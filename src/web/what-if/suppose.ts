import { type SupposedPicture, supposedPicture, type WhatIfFacts } from "../../board/picture.ts";
import { readClusterPolicy } from "../../config/policy/parse-policy-object.ts";
import { readPolicies } from "../../config/policy/read-policy.ts";
import { printYaml } from "../../config/yaml-text.ts";
import { cronProblem } from "../../core/limits/windows.ts";
import type { BadPolicy, Policy } from "../../core/policy/policy.ts";
import { isLastcallError } from "../../errors.ts";

/** The result of a text put in place of a policy. */
export type WhatIfResult =
  | {
      readonly kind: "Planned";
      readonly picture: SupposedPicture;
      readonly warnings: readonly string[];
    }
  /** Each `policy:line: field path: found, expected`; then nothing is planned. */
  | { readonly kind: "Mistakes"; readonly mistakes: readonly string[] };

export interface SupposedText {
  /** The policy in the cluster that the text replaces. */
  readonly policy: string;
  readonly text: string;
}

/** The policy as it is in the cluster; empty if it no longer exists. */
export function policyText({ policies }: WhatIfFacts, name: string): string {
  const found = policies.find(({ metadata }) => metadata.name === name);
  return found === undefined ? "" : printYaml(found);
}

/**
 * The plan that the fleet would have with the text, one policy or several, in place of the policy.
 */
export function suppose(facts: WhatIfFacts, { policy, text }: SupposedText): WhatIfResult {
  try {
    const world = { cronProblem };
    const { policies, warnings } = readPolicies([{ file: "policy", text }], world);
    const replaced = new Set([policy, ...policies.map(({ name }) => name)]);
    const others = clusterPolicies(facts).filter(({ name }) => !replaced.has(name));
    const picture = supposedPicture(facts, sorted([...policies, ...others]));
    return { kind: "Planned", picture, warnings };
  } catch (error) {
    if (!isLastcallError(error) || error.code !== "POLICY_INVALID") throw error;
    const mistakes = error.details as readonly string[] | undefined;
    return { kind: "Mistakes", mistakes: mistakes ?? [error.message] };
  }
}

/** The fleet's actual plan, for comparison. */
export function presentPicture(facts: WhatIfFacts): SupposedPicture {
  return supposedPicture(facts, sorted(clusterPolicies(facts)));
}

type ReadPolicy = Policy | BadPolicy;

function clusterPolicies({ policies }: WhatIfFacts): readonly ReadPolicy[] {
  return policies.map((object) => {
    const read = readClusterPolicy(object, { cronProblem });
    return "policy" in read ? read.policy : read;
  });
}

function sorted(all: readonly ReadPolicy[]) {
  const policies: Policy[] = [];
  const badPolicies: BadPolicy[] = [];
  for (const one of all) {
    if ("problem" in one) badPolicies.push(one);
    else policies.push(one);
  }
  return { policies, badPolicies };
}
