import { type Machine, parseProviderId } from "../core/cluster/identity.ts";
import type { ReleasableNode } from "../core/policy/release-answer.ts";
import { isKarpenters } from "../core/policy/release-mode.ts";

/** The clouds whose machines this version can release. */
export type ReleasingCloud = Extract<Machine["cloud"], "gcp" | "aws">;

/** By a machine's name alone; nothing is contacted. Undefined: this version cannot release it. */
export function releasingCloud(providerID: string): ReleasingCloud | undefined {
  const cloud = parseProviderId(providerID)?.cloud;
  return cloud === "azure" ? undefined : cloud;
}

export function hasReleaser(node: ReleasableNode): boolean {
  return isKarpenters(node) || releasingCloud(node.providerID ?? "") !== undefined;
}
