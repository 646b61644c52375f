import type { PreparedTask } from "../../../contracts/action-runner.ts";
import type { Clock } from "../../../contracts/clock.ts";
import type { Rng } from "../../../core/chance/chance.ts";
import {
  type Fields,
  fieldsOf,
  listOf,
  textOf,
  wholeNumberOf,
} from "../../../core/json/json-field.ts";
import { type Millis, millis } from "../../../core/time/time.ts";
import { assert, LastcallError, messageOf } from "../../../errors.ts";
import { asFault } from "../aws-client.ts";
import type { Holding, TargetIndex } from "./target-index.ts";
import {
  GroupBatches,
  keyOfTarget,
  type RegisterEnd,
  type RemainingTarget,
  type Target,
  type TrafficGroup,
  type TrafficGroups,
} from "./traffic-groups.ts";

/** Checks of one group within this time are batched. */
const lingerMs: Millis = millis(500);

/** One group with its targets that belong to the machine. */
export interface HeldGroup {
  readonly group: TrafficGroup;
  readonly targets: readonly Target[];
}

/** Identifies group and target, since a machine may have several targets in a group. */
function keyOfHolding({ group, target }: Holding): string {
  return `${group.kind} ${group.id} ${keyOfTarget(target)}`;
}

export function byGroup(holdings: readonly Holding[]): readonly HeldGroup[] {
  const groups = Map.groupBy(holdings, ({ group }) => `${group.kind} ${group.id}`);
  return [...groups.values()].map((some) => {
    const targets = new Map(some.map(({ target }) => [keyOfTarget(target), target]));
    return { group: (some[0] as Holding).group, targets: [...targets.values()] };
  });
}

/** The undo record in the status, with all that it takes to register each target again. */
export function undoOf(held: readonly HeldGroup[]): Fields {
  const targetsOf = (kind: TrafficGroup["kind"]) =>
    held
      .filter(({ group }) => group.kind === kind)
      .flatMap(({ group, targets }) => targets.map((target) => ({ name: group.id, ...target })));
  const classic = targetsOf("Classic").map(({ name, id }) => ({ name, id }));
  return {
    targets: targetsOf("TargetGroup").map(({ name, ...target }) => ({
      targetGroupArn: name,
      ...Object.fromEntries(Object.entries(target).filter(([, value]) => value !== undefined)),
    })),
    ...(classic.length === 0 ? {} : { classicLoadBalancers: classic }),
  };
}

/** The registrations that Lastcall removed; others are not recorded. */
export function holdingsOf(undo: Fields | undefined): readonly Holding[] {
  const holding = (
    entry: unknown,
    kind: TrafficGroup["kind"],
    name: string,
  ): readonly Holding[] => {
    const fields = fieldsOf(entry);
    const [group, id] = [textOf(fields[name]), textOf(fields.id)];
    if (group === undefined || id === undefined) return [];
    const target = {
      ...{ id, port: wholeNumberOf(fields.port) },
      availabilityZone: textOf(fields.availabilityZone),
      quicServerId: textOf(fields.quicServerId),
    };
    return [{ group: { kind, id: group, byAddress: false, isOwned: false }, target }];
  };
  return [
    ...listOf(undo?.targets).flatMap((one) => holding(one, "TargetGroup", "targetGroupArn")),
    ...listOf(undo?.classicLoadBalancers).flatMap((one) => holding(one, "Classic", "name")),
  ];
}

/** The batched requests for groups of one kind. */
export interface GroupRequests {
  readonly deregister: GroupBatches<void>;
  readonly register: GroupBatches<RegisterEnd>;
  readonly look: GroupBatches<readonly RemainingTarget[]>;
}

export type RequestsByKind = ReadonlyMap<TrafficGroup["kind"], GroupRequests>;

export function groupRequests(
  kind: TrafficGroups,
  { clock, rng }: { readonly clock: Clock; readonly rng: Rng },
): GroupRequests {
  return {
    deregister: new GroupBatches({
      send: (id, targets, signal) => kind.deregister(id, targets, signal),
      ...{ clock, retryThrottled: rng },
    }),
    register: new GroupBatches({
      send: (id, targets, signal) => kind.register(id, targets, signal),
      ...{ clock, retryThrottled: rng },
    }),
    look: new GroupBatches({
      send: (id, targets, signal) => kind.remaining(id, targets, signal),
      ...{ clock, lingerMs },
    }),
  };
}

export function requestsFor(requests: RequestsByKind, { kind }: TrafficGroup): GroupRequests {
  const found = requests.get(kind);
  assert(found !== undefined, `there is a client of each kind of group, ${kind} too`);
  return found;
}

/** A group from which the machine has not completely gone, as last seen. */
export interface LeftGroup extends HeldGroup {
  /** Whether it still gets new connections there. */
  readonly isRegistered?: boolean;
}

/**
 * The group if targets are still in it, as last seen. An error counts as yes; the next look may
 * succeed.
 */
export async function stillIn(
  held: LeftGroup,
  requests: RequestsByKind,
  signal: AbortSignal,
): Promise<LeftGroup | undefined> {
  const { group, targets } = held;
  try {
    const remaining = await requestsFor(requests, group).look.ask(group.id, targets, signal);
    const keys = new Set(targets.map(keyOfTarget));
    const its = remaining.filter((target) => keys.has(keyOfTarget(target)));
    const isRegistered = its.some((target) => target.isRegistered === true);
    return its.length === 0 ? undefined : { ...held, isRegistered };
  } catch {
    signal.throwIfAborted();
    return held;
  }
}

/**
 * Throws if the machine still gets connections from groups that it was to leave by its label. The
 * addresses of pods leave only as the pods terminate.
 */
export function refuseKept(owned: readonly LeftGroup[]): void {
  const kept = owned.filter(({ group, isRegistered }) => isRegistered && !group.byAddress);
  if (kept.length === 0) return;
  throw new LastcallError(
    "ACTION_TIMEOUT",
    `Cannot deregister the machine from ${counted(kept)}: aws-load-balancer-controller manages its targets and has not acted on the node's label, check that it runs`,
  );
}

interface LeavingTask {
  readonly task: PreparedTask<"deregisterTargets">;
  readonly requests: RequestsByKind;
  /** Targets that earlier attempts have deregistered. */
  readonly out: Set<string>;
}

/**
 * Deregisters one machine from its groups. Recorded registrations are removed at once; those found
 * later are recorded first, because otherwise they could not be restored.
 */
export class LeavingTargets {
  readonly #task: PreparedTask<"deregisterTargets">;
  readonly #requests: RequestsByKind;
  readonly #out: Set<string>;
  readonly #signal: AbortSignal;
  readonly #onRecord: Map<string, Holding>;
  readonly #sent: Promise<void>[] = [];

  constructor({ task, requests, out }: LeavingTask, signal: AbortSignal) {
    this.#task = task;
    this.#requests = requests;
    this.#out = out;
    this.#signal = signal;
    this.#onRecord = new Map(holdingsOf(task.undo).map((one) => [keyOfHolding(one), one]));
    this.#send(this.groups);
  }

  get groups(): readonly HeldGroup[] {
    return byGroup([...this.#onRecord.values()]);
  }

  /** Deregisters further registrations. Returns the groups that the machine has newly left. */
  async leave(found: readonly Holding[]): Promise<readonly HeldGroup[]> {
    const { keep } = this.#task;
    const more = found.filter(
      (one) => !one.group.isOwned && !this.#onRecord.has(keyOfHolding(one)),
    );
    if (more.length === 0 || keep === undefined) return [];
    this.#signal.throwIfAborted();
    await keep(undoOf(byGroup([...this.#onRecord.values(), ...more])));
    this.#signal.throwIfAborted();
    for (const one of more) this.#onRecord.set(keyOfHolding(one), one);
    const held = byGroup(more);
    this.#send(held);
    return held;
  }

  /** Resolves when all requests are complete, with the first error since the last call. */
  async settled(): Promise<LastcallError | undefined> {
    const ends = await Promise.allSettled(this.#sent.splice(0));
    this.#signal.throwIfAborted();
    const failed = ends.find(({ status }) => status === "rejected");
    return failed?.status === "rejected" ? asFault(failed.reason) : undefined;
  }

  #send(held: readonly HeldGroup[]): void {
    for (const { group, targets } of held) {
      const keys = targets.map((target) => keyOfHolding({ group, target }));
      if (keys.every((key) => this.#out.has(key))) continue;
      const sent = requestsFor(this.#requests, group).deregister.ask(
        group.id,
        targets,
        this.#signal,
      );
      sent.then(
        () => {
          for (const key of keys) this.#out.add(key);
        },
        // The caller that waits for it gets the error.
        () => undefined,
      );
      this.#sent.push(sent);
    }
  }
}

/** Describes the result of registering again. Throws the first error. */
export function detailOfReturn(
  ends: readonly PromiseSettledResult<RegisterEnd>[],
  signal: AbortSignal,
): string {
  signal.throwIfAborted();
  const failed = ends.find(({ status }) => status === "rejected");
  if (failed?.status === "rejected") throw asFault(failed.reason);
  const returned = ends.filter((end) => end.status === "fulfilled" && end.value === "Registered");
  const gone = ends.length - returned.length;
  const beside = gone === 0 ? "" : `, ${gone} of ${ends.length} no longer exist`;
  return `registered again with ${counted(returned)}${beside}`;
}

/** Describes the result. */
export function detailOf(
  end: Readonly<Record<"ours" | "owned" | "unclear", readonly HeldGroup[]>> & {
    readonly left: readonly LeftGroup[];
  },
  remark: string | undefined,
): string {
  const { ours, owned, unclear, left } = end;
  const all = ours.length + owned.length;
  const kept = left.filter(({ isRegistered }) => isRegistered);
  const draining = left.length - kept.length;
  const parts = [
    ...(all === 0 ? ["in no target group or classic load balancer"] : []),
    ...(ours.length === 0 ? [] : [`deregistered from ${counted(ours)}`]),
    ...(unclear.length === 0 ? [] : [`the owner of ${unclear.length} could not be read`]),
    ...(owned.length === 0 ? [] : [`left to aws-load-balancer-controller in ${counted(owned)}`]),
    ...(kept.length === 0 ? [] : [`still registered in ${kept.length} of ${all}`]),
    ...(draining === 0 ? [] : [`${draining} of ${all} still draining`]),
    ...(remark === undefined ? [] : [remark]),
  ];
  return parts.join(", ");
}

function counted({ length }: readonly unknown[]): string {
  return length === 1 ? "1 group" : `${length} groups`;
}

/** Retryable, because another attempt continues with the same reading. */
export function notAllRead({ read, listed }: TargetIndex["progress"]): LastcallError {
  const problem = "Cannot find all groups of the machine within one attempt";
  const told =
    listed === 0
      ? "Elastic Load Balancing has not listed them yet"
      : `${read} of ${listed} were read, set a longer timeout for the action`;
  return new LastcallError("ACTION_TIMEOUT", `${problem}: ${told}`);
}

export function unknownLate(why: LastcallError | string): string {
  const told = typeof why === "string" ? why : messageOf(why);
  return `registrations of the last minutes are unknown: ${told}`;
}
