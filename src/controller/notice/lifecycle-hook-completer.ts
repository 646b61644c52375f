import type { Clock } from "../../contracts/clock.ts";
import type { Fleet, FleetChange } from "../../contracts/fleet.ts";
import type { HookFate } from "../../contracts/notice-feed.ts";
import {
  type HookStanding,
  hookStanding,
  type LifecycleHook,
} from "../../core/notice/lifecycle-hook.ts";
import { type Millis, minutes } from "../../core/time/time.ts";
import type { Executor } from "../executor.ts";
import { nextChange } from "./next-change.ts";

export interface LifecycleHookCompleterTools {
  readonly fleet: Fleet;
  readonly executor: Executor;
  readonly clock: Clock;
}

/** Without a change a wait is looked at this often: it is over by itself some time. */
const quietMs: Millis = minutes(1);

/**
 * Has the groups that wait for a node go on with it: when a new one is ready, an old one drained.
 */
export class LifecycleHookCompleter {
  readonly #tools: LifecycleHookCompleterTools;

  constructor(tools: LifecycleHookCompleterTools) {
    this.#tools = tools;
  }

  /** See `FeedListener.onHook`. Rejects when the signal aborts. */
  async handle(hook: LifecycleHook, signal: AbortSignal): Promise<HookFate> {
    const { executor } = this.#tools;
    if (!executor.tellsGroups) return "LeftAlone";
    const standing = await this.#settled(hook, signal);
    if (standing === "Over") return "Ended";
    if (standing !== "MayGoOn") return standing;
    await executor.complete(hook, signal);
    return "Ended";
  }

  async #settled(
    hook: LifecycleHook,
    signal: AbortSignal,
  ): Promise<Exclude<HookStanding, "Waiting">> {
    for (;;) {
      const standing = this.#standing(hook);
      if (standing !== "Waiting") return standing;
      await this.#nextChange(hook, signal);
    }
  }

  #standing(hook: LifecycleHook): HookStanding {
    const { fleet, clock } = this.#tools;
    return hookStanding(hook, {
      at: clock.now(),
      policies: fleet.policies(),
      nodeOf: (machine) => fleet.nodeOf(machine),
      departuresOf: (nodeUid) => fleet.departuresOf(nodeUid),
    });
  }

  /**
   * Hundreds may wait, and in a large fleet something changes at any time: only what concerns it.
   */
  async #nextChange(hook: LifecycleHook, signal: AbortSignal): Promise<void> {
    const { fleet, clock } = this.#tools;
    const node = fleet.nodeOf(hook.machine);
    const concerns = (what: FleetChange) => this.#concerns(what, node);
    await nextChange({ fleet, clock, mostMs: quietMs, concerns, signal });
  }

  #concerns(what: FleetChange, node: NodeKey | undefined): boolean {
    if (node === undefined || what.policies || what.nodes.has(node.name)) return true;
    if (what.departures.size === 0) return false;
    return this.#tools.fleet.departuresOf(node.uid).some(({ uid }) => what.departures.has(uid));
  }
}

interface NodeKey {
  readonly name: string;
  readonly uid: string;
}
