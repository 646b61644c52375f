import { type BoardRights, type ClusterConnection, noRights } from "../../board/stream.ts";
import type { Clock } from "../../contracts/clock.ts";
import type { Fleet } from "../../contracts/cluster.ts";
import type { KubeSender } from "../../contracts/kube-api.ts";
import { type Instant, type Millis, seconds } from "../../core/time/time.ts";
import { isLastcallError, type LastcallError, messageOf } from "../../errors.ts";
import { group } from "../../kube/object/api-call.ts";
import { hasRight } from "../../kube/watch/collection.ts";

/** How often an unreachable server is probed. */
const probeMs = seconds(1);
/**
 * Longer than any pause between two attempts of a watch: silence for this long means that all is
 * well.
 */
const quietMs = seconds(12);

export interface ConnectionWatchOptions {
  readonly api: KubeSender;
  readonly clock: Clock;
  readonly onChange: () => void;
}

interface Outage {
  readonly sinceAt: Instant;
  readonly lastMs: number;
  readonly problem: string;
}

/** Whether the cluster responds, judged by its watches. */
export class ConnectionWatch {
  readonly #options: ConnectionWatchOptions;
  #isSynced = false;
  #trouble: Outage | undefined;

  constructor(options: ConnectionWatchOptions) {
    this.#options = options;
  }

  state(): ClusterConnection {
    if (this.#trouble !== undefined) {
      const { sinceAt, problem } = this.#trouble;
      return { kind: "Away", sinceAt, problem };
    }
    return this.#isSynced ? { kind: "Live" } : { kind: "Connecting" };
  }

  /** A watch failed and will be retried. */
  onError(error: LastcallError): void {
    const { clock, onChange } = this.#options;
    const sinceAt = this.#trouble?.sinceAt ?? clock.now();
    this.#trouble = { sinceAt, lastMs: clock.monotonic(), problem: error.message };
    onChange();
  }

  /** Runs until the signal aborts; calls back once the cluster responds, and after each outage. */
  async run(fleet: Fleet, onLive: () => Promise<void>, signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    await fleet.synced(signal).catch(() => undefined);
    this.#isSynced = !signal.aborted;
    this.#options.onChange();
    let wasLive = false;
    while (!signal.aborted) {
      if (this.#trouble !== undefined && (await this.#isBack(fleet, signal))) {
        this.#trouble = undefined;
        this.#options.onChange();
      }
      const isLive = this.state().kind === "Live";
      if (isLive && !wasLive) await onLive();
      wasLive = isLive;
      await clock.sleep(probeMs, signal).catch(() => undefined);
    }
  }

  /** True if every watch has recovered, or none has failed for a while, and the server answers. */
  async #isBack(fleet: Fleet, signal: AbortSignal): Promise<boolean> {
    const { api, clock } = this.#options;
    const sinceMs = clock.monotonic() - (this.#trouble?.lastMs ?? 0);
    const isHeard = fleet.silences().every(({ ms }) => ms < sinceMs);
    if (!isHeard && sinceMs < quietMs) return false;
    try {
      const answer = await api.send({ method: "GET", path: "/version", signal });
      return answer.status === 200;
    } catch (error) {
      if (!signal.aborted && this.#trouble !== undefined) {
        this.#trouble = { ...this.#trouble, problem: messageOf(error) };
      }
      return false;
    }
  }
}

/** The caller's permissions, and the objects read on demand that the caller may not see. */
export interface CallerRights {
  readonly rights: BoardRights;
  readonly missing: readonly string[];
}

const unknownRights: CallerRights = { rights: noRights, missing: [] };

/**
 * A permission may be granted or revoked while the board runs. It is checked at most this often.
 */
const againMs: Millis = seconds(20);

export interface RightsWatchOptions {
  readonly api: KubeSender;
  readonly clock: Pick<Clock, "monotonic">;
  readonly onChange: () => void;
}

/** The caller's last known permissions, checked again only while somebody uses the board. */
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

  /** If the server cannot be reached, the previous answer stays. */
  async ask(): Promise<void> {
    const { api, clock, onChange } = this.#options;
    this.#askedMs = clock.monotonic();
    const found = await callerRights(api);
    if (found === undefined) return;
    this.#known = found;
    onChange();
  }

  /**
   * Called when somebody uses the board: checks again, unless nothing was ever checked or the last
   * check is recent.
   */
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

/** Undefined if it cannot be checked now. */
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
