import type { Clock } from "../../contracts/clock.ts";
import type { HookLimits, LifecycleHooks } from "../../contracts/cloud/lifecycle-hooks.ts";
import type { HookDelivery } from "../../contracts/cloud/notice-feed.ts";
import type { Fleet, FleetChange } from "../../contracts/fleet.ts";
import {
  type HookScene,
  type HookStanding,
  hookResult,
  hookStanding,
  type LifecycleHook,
} from "../../core/notice/lifecycle-hook.ts";
import { type Millis, millis, minutes, plus, seconds } from "../../core/time/time.ts";
import { isLastcallError, messageOf } from "../../errors.ts";
import type { Executor } from "../executor.ts";
import { nextChange } from "./next-change.ts";

export interface LifecycleHookCompleterOptions {
  readonly fleet: Fleet;
  readonly executor: Executor;
  readonly clock: Clock;
  /** How long a new instance may take to become a ready node; absent: nobody ends one. */
  readonly joinWithinMs?: Millis | undefined;
}

/** Without a change a wait is looked at this often: it is over by itself some time. */
const quietMs: Millis = minutes(1);
/** How soon a group that did not answer is asked again to wait for longer. */
const againMs: Millis = seconds(10);

/** What is known of one wait. */
interface Wait {
  readonly hook: LifecycleHook;
  readonly hooks: LifecycleHooks;
  limits?: HookLimits | undefined;
}

/**
 * Has the groups that wait for a node go on with it: when a new one is ready, an old one drained.
 * Meanwhile a group is told to wait for longer.
 */
export class LifecycleHookCompleter {
  readonly #options: LifecycleHookCompleterOptions;

  constructor(options: LifecycleHookCompleterOptions) {
    this.#options = options;
  }

  /** See `FeedListener.onHook`. Rejects when the signal aborts. */
  async handle(hook: LifecycleHook, signal: AbortSignal): Promise<HookDelivery> {
    const { hooks } = this.#options.executor;
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
   * Has the group wait for longer, again and again at half of its time; whoever led before may have
   * told it last. Ends where it does not wait any more, or may not be told.
   */
  async #extend(wait: Wait, signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    const { hook, hooks } = wait;
    let toldAt = hook.at;
    for (;;) {
      try {
        wait.limits ??= await hooks.limits(hook, signal);
        if (wait.limits === undefined) return;
        const dueAt = plus(toldAt, millis(wait.limits.heartbeatMs / 2));
        await clock.sleepUntil(dueAt, signal);
        if ((await hooks.extend(hook, signal)) !== "Completed") return;
        toldAt = clock.now();
      } catch (error) {
        signal.throwIfAborted();
        this.#tellTrouble(error);
        if (!isLastcallError(error) || !error.retryable) return;
        await clock.sleep(againMs, signal);
      }
    }
  }

  #tellTrouble(error: unknown): void {
    const { metrics, log } = this.#options.executor.telemetry;
    const code = isLastcallError(error) ? error.code : "UNEXPECTED";
    metrics.count("lastcall_errors_total", { code });
    log.warn("hook-not-extended", { code, error: messageOf(error) });
  }

  #scene({ limits }: Wait): HookScene {
    const { fleet, clock, joinWithinMs } = this.#options;
    return {
      at: clock.now(),
      policies: fleet.policies(),
      nodeOf: (machine) => fleet.nodeOf(machine),
      departuresOf: (nodeUid) => fleet.departuresOf(nodeUid),
      departures: () => fleet.view().departures,
      longestMs: limits?.longestMs,
      joinWithinMs,
    };
  }

  /**
   * Hundreds may wait, and in a large fleet something changes at any time: only what concerns it.
   */
  async #nextChange(hook: LifecycleHook, signal: AbortSignal): Promise<void> {
    const { fleet, clock } = this.#options;
    const node = fleet.nodeOf(hook.machine);
    const concerns = (what: FleetChange) => this.#concerns(what, node);
    await nextChange({ fleet, clock, mostMs: quietMs, concerns, signal });
  }

  #concerns(what: FleetChange, node: NodeKey | undefined): boolean {
    if (node === undefined || what.policies || what.nodes.has(node.name)) return true;
    if (what.departures.size === 0) return false;
    return this.#options.fleet.departuresOf(node.uid).some(({ uid }) => what.departures.has(uid));
  }
}

interface NodeKey {
  readonly name: string;
  readonly uid: string;
}
