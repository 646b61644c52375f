import { isKnownProviderId } from "../../core/cluster/node.ts";
import type { ReleasableNode } from "../../core/policy/release-answer.ts";
import { isKarpenters } from "../../core/policy/release-mode.ts";

/**
 * Whether this version can release such a machine, as far as its Node tells; nothing is contacted.
 */
export function hasReleaser(node: ReleasableNode): boolean {
  return isKarpenters(node) || isKnownProviderId(node.providerID ?? "");
}
