import { parseInstant, plus, seconds } from "../core/time/time.ts";
import type { ModelStore } from "./api/object-store.ts";
import type { Happening, Invariant } from "./happening.ts";

/** Invariant 5: whoever writes or releases holds the Lease, and holds it now. */
export const oneActor: Invariant = {
  name: "one-actor",
  check: (store) => (happening) => {
    const act = actOf(happening);
    if (act === undefined) return undefined;
    const { holder, untilAt } = leaseOf(store);
    if (holder === act.actor && happening.at < untilAt) return undefined;
    const found = holder === undefined ? "nobody did" : `${holder} did until its term ended`;
    return `${act.actor} did ${act.what} without holding the lease, ${found}`;
  },
};

/** Events and the Lease itself are written by those who do not lead, too. */
function actOf(happening: Happening): { actor: string; what: string } | undefined {
  if (happening.kind === "Release") {
    return { actor: happening.actor, what: `release ${happening.request.providerID}` };
  }
  if (happening.kind !== "Asked") return undefined;
  const { method, path } = happening.request;
  if (/\/(events|leases)(\/|$)/.test(path)) return undefined;
  return { actor: happening.actor, what: `${method} ${path}` };
}

function leaseOf(store: ModelStore): { holder: string | undefined; untilAt: number } {
  for (const lease of store.collection("leases.coordination.k8s.io").all()) {
    if (lease.metadata.name !== "lastcall") continue;
    const spec = lease.spec as {
      holderIdentity?: string;
      renewTime?: string;
      leaseDurationSeconds?: number;
    };
    const renewedAt = parseInstant(spec.renewTime ?? "");
    const term = seconds(spec.leaseDurationSeconds ?? 0);
    const untilAt = renewedAt === undefined ? 0 : plus(renewedAt, term);
    return { holder: spec.holderIdentity || undefined, untilAt };
  }
  return { holder: undefined, untilAt: 0 };
}
