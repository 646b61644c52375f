import { type BoardRights, noRights } from "../../board/stream.ts";
import type { Clock } from "../../contracts/clock.ts";
import type { KubeSender } from "../../contracts/kube-api.ts";
import { type Millis, seconds } from "../../core/time/time.ts";
import { isLastcallError } from "../../errors.ts";
import { group } from "../../kube/object/paths.ts";
import { hasRight } from "../../kube/own-rights.ts";

/** What the caller may do, and what they may not see of what is looked at on demand alone. */
export interface CallerRights {
  readonly rights: BoardRights;
  readonly missing: readonly string[];
}

const unknownRights: CallerRights = { rights: noRights, missing: [] };

/** A right may be granted or taken away while the board runs; nobody is asked more often. */
const againMs: Millis = seconds(20);

export interface RightsWatchOptions {
  readonly api: KubeSender;
  readonly clock: Pick<Clock, "monotonic">;
  readonly onChange: () => void;
}

/** The caller's rights as they were found last: asked again where somebody looks, never else. */
export class RightsWatch {
  readonly #options: RightsWatchOptions;
  #known = unknownRights;
  #askedMs: number | undefined;

  constructor(options: RightsWatchOptions) {
    this.#options = options;
  }

  known(): CallerRights {
    return this.#known;
  }

  /** Of a server that cannot be asked now what was found before stands. */
  async ask(): Promise<void> {
    const { api, clock, onChange } = this.#options;
    this.#askedMs = clock.monotonic();
    const found = await callerRights(api);
    if (found === undefined) return;
    this.#known = found;
    onChange();
  }

  /** Somebody looks at the board: asks again, unless nobody has asked before or it was just now. */
  look(): void {
    const { clock } = this.#options;
    if (this.#askedMs === undefined || clock.monotonic() - this.#askedMs < againMs) return;
    void this.ask();
  }
}

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
