import { parseProviderId } from "../core/cluster/identity.ts";

/** Whether this version can release such a machine, as far as its name tells; nothing is contacted. */
export function hasReleaser(providerID: string): boolean {
  return parseProviderId(providerID)?.cloud === "gcp";
}
