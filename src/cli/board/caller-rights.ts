import { type BoardRights, noRights } from "../../board/stream.ts";
import type { KubeSender } from "../../contracts/kube-api.ts";
import { isLastcallError } from "../../errors.ts";
import { group } from "../../kube/object/paths.ts";
import { hasRight } from "../../kube/own-rights.ts";

/** What the caller may do, and what they may not see of what is looked at on demand alone. */
export interface CallerRights {
  readonly rights: BoardRights;
  readonly missing: readonly string[];
}

export const unknownRights: CallerRights = { rights: noRights, missing: [] };

const acts = {
  patchNodes: { verb: "patch", group: "", resource: "nodes" },
  createDepartures: { verb: "create", group, resource: "departures" },
  patchDepartures: { verb: "patch", group, resource: "departures" },
  deleteDepartures: { verb: "delete", group, resource: "departures" },
  patchPolicies: { verb: "patch", group, resource: "departurepolicies" },
} as const;

const looks = [
  { verb: "list", group: "", resource: "pods" },
  { verb: "list", group: "policy", resource: "poddisruptionbudgets" },
] as const;

/** Undefined where it cannot be asked now. */
export async function callerRights(api: KubeSender): Promise<CallerRights | undefined> {
  try {
    const rights = await Promise.all(
      Object.entries(acts).map(
        async ([name, right]) => [name, await hasRight(api, right)] as const,
      ),
    );
    const missing = await Promise.all(
      looks.map(async (right) => ((await hasRight(api, right)) ? [] : [missingLook(right)])),
    );
    return {
      rights: { ...noRights, ...Object.fromEntries(rights) },
      missing: missing.flat(),
    };
  } catch (error) {
    if (isLastcallError(error)) return undefined;
    throw error;
  }
}

function missingLook({ group: of, resource }: (typeof looks)[number]): string {
  const full = of === "" ? resource : `${resource}.${of}`;
  return `Cannot list ${full}: it is forbidden, and without it no drain plan can be shown`;
}
