import { type BoardRights, type ClusterConnection, noRights } from "../../board/stream.ts";
import type { Clock } from "../../contracts/clock.ts";
import type { Fleet } from "../../contracts/cluster.ts";
import type { KubeSender } from "../../contracts/kube-api.ts";
import { inEnglish } from "../../core/reason/english.ts";
import { type Instant, type Millis, minus, seconds } from "../../core/time/time.ts";
import { isLastcallError, type LastcallError, messageOf } from "../../errors.ts";
import { DeadWatchError } from "../../kube/http/http-connection.ts";
import { group } from "../../kube/object/api-call.ts";
import { hasRight } from "../../kube/watch/collection.ts";

/** How often an unreachable server is probed. */
const probeMs = seconds(1);
/** The board's longest pause between two attempts of a watch: a person waits for it. */
export const watchPauseMs = seconds(2);
/** How long a probe may take while the server does not answer. */
const probeTimeoutMs = seconds(2);

/** How long a problem is shown: three watches fail in turn, each in its own words. */
const shownForMs = seconds(5);

/** Longer than the pause after that many failures: silence for this long means that all is well. */
function quietMs(failures: number): number {
  return Math.min(watchPauseMs, 100 * 2 ** failures) + 500;
}

export interface ConnectionWatchOptions {
  readonly api: KubeSender;
  readonly clock: Clock;
  readonly onChange: () => void;
}

interface Outage {
  readonly sinceAt: Instant;
  readonly lastMs: number;
  /** How many watches have failed; none while the server only hangs. */
  readonly failures: number;
  readonly problem: string;
  /** Since when this problem is shown. */
  readonly shownFromMs: number;
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
    // The server has just answered: a notice that it does not would only flicker.
    if (error instanceof DeadWatchError) return;
    const { clock, onChange } = this.#options;
    const { sinceAt = clock.now(), failures = 0 } = this.#trouble ?? {};
    const lastMs = clock.monotonic();
    this.#trouble = { sinceAt, lastMs, failures: failures + 1, ...this.#shown(error.message) };
    onChange();
  }

  /** The server has not answered a probe for this long. Its watches are open, and say nothing. */
  onSilent(silentMs: Millis): void {
    const { clock, onChange } = this.#options;
    if (this.#trouble !== undefined) return;
    const sinceAt = minus(clock.now(), silentMs);
    const problem = `Cannot reach the API server: it has not answered for ${silentMs / 1000} s`;
    this.#trouble = { sinceAt, lastMs: clock.monotonic(), failures: 0, ...this.#shown(problem) };
    onChange();
  }

  /** Runs until the signal aborts; calls back once the cluster responds, and after each outage. */
  async run(
    fleet: Pick<Fleet, "synced" | "silences">,
    onLive: () => Promise<void>,
    signal: AbortSignal,
  ): Promise<void> {
    const { clock } = this.#options;
    await fleet.synced(signal).catch(() => undefined);
    this.#isSynced = !signal.aborted;
    this.#options.onChange();
    let wasLive = false;
    while (!signal.aborted) {
      const before = this.#trouble;
      // A watch may fail while the server is asked: that is another outage.
      if (before && (await this.#isBack(before, fleet, signal)) && this.#trouble === before) {
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
  async #isBack(
    { lastMs, failures }: Outage,
    fleet: Pick<Fleet, "silences">,
    signal: AbortSignal,
  ): Promise<boolean> {
    const { api, clock } = this.#options;
    const sinceMs = clock.monotonic() - lastMs;
    const isHeard = failures === 0 || fleet.silences().every(({ ms }) => ms < sinceMs);
    if (!isHeard && sinceMs < quietMs(failures)) return false;
    try {
      const timeoutMs = probeTimeoutMs;
      const { status } = await api.send({ method: "GET", path: "/version", timeoutMs, signal });
      // Whoever may not read its version has an answer, too.
      if (status < 500) return true;
      this.#stillAway(`Cannot get /version: the API server answered ${status}`);
    } catch (error) {
      if (!signal.aborted) this.#stillAway(messageOf(error));
    }
    return false;
  }

  #stillAway(problem: string): void {
    if (this.#trouble !== undefined) this.#trouble = { ...this.#trouble, ...this.#shown(problem) };
  }

  /** What is shown now: the problem before it, if that is new. */
  #shown(problem: string): Pick<Outage, "problem" | "shownFromMs"> {
    const nowMs = this.#options.clock.monotonic();
    const before = this.#trouble;
    const isFresh = before !== undefined && nowMs - before.shownFromMs < shownForMs;
    return isFresh
      ? { problem: before.problem, shownFromMs: before.shownFromMs }
      : { problem, shownFromMs: nowMs };
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
  return inEnglish({ says: "api.NoDrainPlan", verb: "list", object: full });
}
