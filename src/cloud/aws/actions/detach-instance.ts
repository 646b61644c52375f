import type {
  ActionDone,
  ActionProblem,
  ActionRunner,
  ActionTask,
  PreparedTask,
} from "../../../contracts/action-runner.ts";
import {
  type InRegion,
  instanceOf,
  type KnownInstances,
  type Membership,
  problemOf,
} from "../ec2-machine.ts";

/** The part of EC2 Auto Scaling that is needed. Implemented by `../auto-scaling.ts`. */
export interface DetachingGroups {
  membership(instanceId: string, signal: AbortSignal): Promise<Membership | undefined>;
  /** False if the instance has already left the group. */
  detach(
    instanceId: string,
    how: { readonly group: string; readonly desired: "Kept" | "Decremented" },
    signal: AbortSignal,
  ): Promise<boolean>;
}

type DetachKind = "detach";

/**
 * Detaches an instance from its Auto Scaling group at once, so that the group launches a
 * replacement while this one still drains. A roll-back leaves the instance outside its group,
 * because attaching it again would make the group terminate another one.
 */
export class DetachRunner implements ActionRunner<DetachKind> {
  readonly #groupsIn: InRegion<DetachingGroups>;
  readonly #known: KnownInstances;

  constructor(groupsIn: InRegion<DetachingGroups>, known: KnownInstances = () => []) {
    this.#groupsIn = groupsIn;
    this.#known = known;
  }

  /** Checks the permission with any group, because only the machine determines the group. */
  async check(_: unknown, signal: AbortSignal): Promise<ActionProblem | undefined> {
    const [any] = this.#known();
    if (any === undefined) return undefined;
    return problemOf("detach", signal, async () => {
      await this.#groupsIn(any.region).membership(any.instanceId, signal);
    });
  }

  async prepare(task: ActionTask<DetachKind>, signal: AbortSignal): Promise<undefined> {
    signal.throwIfAborted();
    instanceOf(task);
  }

  async apply(task: PreparedTask<DetachKind>, signal: AbortSignal): Promise<ActionDone> {
    const { instanceId, region } = instanceOf(task);
    const groups = this.#groupsIn(region);
    const membership = await groups.membership(instanceId, signal);
    if (membership === undefined) return { detail: "in no Auto Scaling group" };
    const { group, state, weight } = membership;
    if (/^(Detach|Terminat)/.test(state)) return { detail: `already ${state} in ${group}` };
    const desired = task.how.decrementDesiredCapacity ? "Decremented" : "Kept";
    const isDone = await groups.detach(instanceId, { group, desired }, signal);
    const by = weight === undefined ? "" : ` by ${weight}`;
    const size = desired === "Kept" ? "which replaces it" : `which is smaller${by}`;
    return {
      detail: isDone ? `detached from the group ${group}, ${size}` : `no longer in ${group}`,
    };
  }

  async undo(): Promise<ActionDone> {
    return { detail: "the instance is not attached again" };
  }
}
