import { type Clock, nextChange } from "../../contracts/clock.ts";
import type { HookDelivery, HookLimits, LifecycleHooks } from "../../contracts/cloud.ts";
import type { Fleet, FleetChange } from "../../contracts/cluster.ts";
import type { Telemetry } from "../../contracts/telemetry.ts";
import {
  type HookScene,
  type HookStanding,
  hookResult,
  hookStanding,
  type LifecycleHook,
} from "../../core/notice/instance-notice.ts";
import { type Millis, millis, minutes, plus, seconds } from "../../core/time/time.ts";
import { isLastcallError, messageOf } from "../../errors.ts";
import { countedHooks } from "./counted-hooks.ts";

export interface LifecycleHookCompleterOptions {
  readonly fleet: Fleet;
  /** Unset: hooks are not completed. */
  readonly hooks: LifecycleHooks | undefined;
  readonly telemetry: Telemetry;
  readonly clock: Clock;
  /** How long a new instance may take to become a Ready node; unset: without limit. */
  readonly joinWithinMs?: Millis | undefined;
}

/** Resync interval of a wait, which may end without a change in the cluster. */
const quietMs: Millis = minutes(1);
/** How soon a failed heartbeat is retried. */
const heartbeatRetryMs: Millis = seconds(10);

/** The state of one waiting hook. */
interface Wait {
  readonly hook: LifecycleHook;
  readonly hooks: LifecycleHooks;
  limits?: HookLimits | undefined;
}

/**
 * Completes lifecycle hooks: of a new instance when its node is Ready, of a terminating one when
 * its node is drained. Sends heartbeats until then.
 */
export class LifecycleHookCompleter {
  readonly #options: LifecycleHookCompleterOptions;
  readonly #hooks: LifecycleHooks | undefined;

  constructor(options: LifecycleHookCompleterOptions) {
    this.#options = options;
    this.#hooks = options.hooks && countedHooks(options.hooks, options.telemetry);
  }

  /** See `FeedListener.onHook`. Rejects when the signal aborts. */
  async handle(hook: LifecycleHook, signal: AbortSignal): Promise<HookDelivery> {
    const hooks = this.#hooks;
    if (hooks === undefined) return "LeftAlone";
    const wait = { hook, hooks };
    const standing = await this.#settled(wait, signal);
    if (standing === "Over") return "Ended";
    if (standing !== "MayGoOn" && standing !== "NeverJoined") return standing;
    const result = standing === "MayGoOn" ? hookResult(hook, this.#scene(wait)) : "Abandon";
    await hooks.complete(hook, result, signal);
    return "Ended";
  }

  async #settled(wait: Wait, signal: AbortSignal): Promise<Exclude<HookStanding, "Waiting">> {
    const over = new AbortController();
    const until = AbortSignal.any([signal, over.signal]);
    let isExtended = false;
    try {
      for (;;) {
        const standing = hookStanding(wait.hook, this.#scene(wait));
        if (standing !== "Waiting") return standing;
        if (!isExtended && wait.hook.transition === "Terminating") {
          isExtended = true;
          void this.#extend(wait, until).catch(() => undefined);
        }
        await this.#nextChange(wait.hook, signal);
      }
    } finally {
      over.abort();
    }
  }

  /**
   * Sends heartbeats at half of the hook's timeout, counted from its start: an earlier leader's are
   * not known. Ends when the group no longer waits, or heartbeats are refused.
   */
  async #extend(wait: Wait, signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    const { hook, hooks } = wait;
    let extendedAt = hook.at;
    for (;;) {
      try {
        wait.limits ??= await hooks.limits(hook, signal);
        if (wait.limits === undefined) return;
        const dueAt = plus(extendedAt, millis(wait.limits.heartbeatMs / 2));
        await clock.sleepUntil(dueAt, signal);
        if ((await hooks.extend(hook, signal)) !== "Completed") return;
        extendedAt = clock.now();
      } catch (error) {
        signal.throwIfAborted();
        this.#tellTrouble(error);
        if (!isLastcallError(error) || !error.retryable) return;
        await clock.sleep(heartbeatRetryMs, signal);
      }
    }
  }

  #tellTrouble(error: unknown): void {
    const { metrics, log } = this.#options.telemetry;
    const code = isLastcallError(error) ? error.code : "UNEXPECTED";
    metrics.count("lastcall_errors_total", { code });
    log.warn("hook-not-extended", { code, error: messageOf(error) });
  }

  #scene({ limits }: Wait): HookScene {
    const { fleet, clock, joinWithinMs } = this.#options;
    return {
      at: clock.now(),
      policies: fleet.policies(),
      nodesOf: (machine) => fleet.nodesOf(machine),
      departuresOf: (nodeUid) => fleet.departuresOf(nodeUid),
      departures: () => fleet.view().departures,
      longestMs: limits?.longestMs,
      joinWithinMs,
    };
  }

  /**
   * Waits for a change that concerns this hook: hundreds may wait while the fleet keeps changing.
   */
  async #nextChange(hook: LifecycleHook, signal: AbortSignal): Promise<void> {
    const { fleet, clock } = this.#options;
    const nodes = fleet.nodesOf(hook.machine);
    const concerns = (what: FleetChange) =>
      nodes.length === 0 || nodes.some((node) => this.#concerns(what, node));
    await nextChange({ fleet, clock, mostMs: quietMs, concerns, signal });
  }

  #concerns(what: FleetChange, node: NodeKey): boolean {
    if (what.policies || what.nodes.has(node.name)) return true;
    if (what.departures.size === 0) return false;
    return this.#options.fleet.departuresOf(node.uid).some(({ uid }) => what.departures.has(uid));
  }
}

interface NodeKey {
  readonly name: string;
  readonly uid: string;
}
