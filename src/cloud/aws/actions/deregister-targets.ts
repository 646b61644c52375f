import type {
  ActionDone,
  ActionProblem,
  ActionRunner,
  ActionTask,
  PreparedTask,
} from "../../../contracts/action-runner.ts";
import type { Clock } from "../../../contracts/clock.ts";
import {
  type Fields,
  fieldsOf,
  listOf,
  textOf,
  wholeNumberOf,
} from "../../../core/json/json-field.ts";
import {
  between,
  type Instant,
  type Millis,
  millis,
  minus,
  seconds,
} from "../../../core/time/time.ts";
import { assert } from "../../../errors.ts";
import { asFault } from "../aws-fault.ts";
import { type Ec2Instances, type InRegion, stageOf } from "../ec2-machine.ts";
import { instanceOf, problemOf } from "./action-instance.ts";
import { GroupBatches } from "./group-batches.ts";
import type { Holding, TargetIndex } from "./target-index.ts";
import {
  keyOfTarget,
  type Target,
  type TrafficGroup,
  type TrafficGroups,
} from "./traffic-groups.ts";

/** What a region has of load balancers. */
export interface RegionTraffic {
  readonly index: TargetIndex;
  readonly kinds: readonly TrafficGroups[];
  readonly instances: Pick<Ec2Instances, "instances">;
}

interface Lines {
  readonly deregister: GroupBatches<void>;
  readonly look: GroupBatches<readonly Target[]>;
  readonly kind: TrafficGroups;
}

type LinesOf = ReadonlyMap<TrafficGroup["kind"], Lines>;

/** One group with those of its targets that are the machine's. */
interface Held {
  readonly group: TrafficGroup;
  readonly targets: readonly Target[];
}

type Kind = "deregisterTargets";

const firstLookMs: Millis = seconds(1);
const lookMs: Millis = seconds(5);
/** Looks at one group that fall into this span are one. */
const lingerMs: Millis = millis(500);
/** So long before the end of its time the wait says how far it has come. */
const marginMs: Millis = seconds(1);

/** Takes machines out of their target groups and classic load balancers, and puts them back. */
export class TargetRunner implements ActionRunner<Kind> {
  readonly #trafficIn: InRegion<RegionTraffic>;
  readonly #clock: Clock;
  readonly #lines = new Map<RegionTraffic, LinesOf>();

  constructor({
    trafficIn,
    clock,
  }: {
    readonly trafficIn: InRegion<RegionTraffic>;
    readonly clock: Clock;
  }) {
    this.#trafficIn = trafficIn;
    this.#clock = clock;
  }

  /** Whether the load balancers can be read; reading them is what is needed at a notice. */
  check(_: unknown, signal: AbortSignal): Promise<ActionProblem | undefined> {
    return problemOf("deregisterTargets", signal, async () => {
      const [fault] = await this.#trafficIn(undefined).index.faults(signal);
      if (fault !== undefined) throw fault;
    });
  }

  /**
   * All that is registered and ours to take out; undefined where nothing is. Where nobody tells the
   * owner it is taken out: a machine that goes and is left in fails requests, while one that
   * aws-load-balancer-controller has taken out as well does no harm.
   */
  async prepare(task: ActionTask<Kind>, signal: AbortSignal): Promise<Fields | undefined> {
    const { holdings } = await this.#find(task, signal);
    const ours = byGroup(holdings.filter(({ group }) => !group.isOwned));
    return ours.length === 0 ? undefined : undoOf(ours);
  }

  /** Does all that can be done, and throws what failed first after that. */
  async apply(task: PreparedTask<Kind>, signal: AbortSignal): Promise<ActionDone> {
    const { holdings, faults, traffic } = await this.#find(task, signal);
    // What is not on record could not be put back.
    const ours = byGroup(holdingsOf(task.undo));
    const owned = byGroup(holdings.filter(({ group }) => group.isOwned));
    const unclear = byGroup(holdings.filter(({ group }) => group.isOwned === undefined));
    const lines = this.#linesOf(traffic);
    const ends = await Promise.allSettled(
      ours.map(({ group, targets }) => of(lines, group).deregister.ask(group.id, targets, signal)),
    );
    throwFailed(ends, signal);
    const held = [...ours, ...owned];
    const untilAt = minus(task.endsAt, marginMs);
    const left = task.how.wait ? await this.#wait({ held, lines, untilAt }, signal) : [];
    const [fault] = faults;
    if (fault !== undefined) throw fault;
    return { detail: detailOf({ ours, owned, unclear, left }) };
  }

  /** Registers again what is still the machine's, where it runs. */
  async undo(task: PreparedTask<Kind>, signal: AbortSignal): Promise<ActionDone> {
    const { instanceId, region } = instanceOf(task);
    const traffic = this.#trafficIn(region);
    const [instance] = await traffic.instances.instances([instanceId], signal);
    if (instance === undefined || stageOf(instance) !== "Running") {
      return { detail: "in no group again: the instance does not run any more" };
    }
    // An address that a pod has given up may be another pod's by now.
    const { addresses, fault } = await addressesOf(task, signal);
    const recorded = holdingsOf(task.undo);
    const its = new Set([instanceId, ...addresses]);
    const held = byGroup(recorded.filter(({ target }) => its.has(target.id)));
    const lines = this.#linesOf(traffic);
    const ends = await Promise.allSettled(
      held.map(async ({ group, targets }) => {
        const { deregister, kind } = of(lines, group);
        await deregister.settled(group.id, signal);
        await kind.register(group.id, targets, signal);
      }),
    );
    if (held.length > 0) traffic.index.readAgain();
    throwFailed(ends, signal);
    // Whose the other addresses are is not known, and not for another attempt to forget.
    const isWhole = recorded.every(({ target }) => its.has(target.id));
    if (fault?.[0] !== undefined && !isWhole) throw fault[0];
    return { detail: `registered again with ${counted(held)}` };
  }

  async #find(task: ActionTask<Kind>, signal: AbortSignal) {
    signal.throwIfAborted();
    const { instanceId, region } = instanceOf(task);
    const traffic = this.#trafficIn(region);
    const { addresses, fault } = await addressesOf(task, signal);
    const found = await traffic.index.find({ instanceId, addresses }, signal);
    return { ...found, faults: [...found.faults, ...(fault ?? [])], traffic };
  }

  #linesOf(traffic: RegionTraffic): LinesOf {
    const lines =
      this.#lines.get(traffic) ??
      new Map(traffic.kinds.map((kind) => [kind.kind, linesOf(kind, this.#clock)]));
    this.#lines.set(traffic, lines);
    return lines;
  }

  /** Gives the groups in which connections are left when the time is up. */
  async #wait(
    {
      held,
      lines,
      untilAt,
    }: {
      readonly held: readonly Held[];
      readonly lines: LinesOf;
      readonly untilAt: Instant;
    },
    signal: AbortSignal,
  ): Promise<readonly Held[]> {
    const clock = this.#clock;
    const over = new AbortController();
    const both = AbortSignal.any([signal, over.signal]);
    const wholeMs = millis(Math.max(0, between(clock.now(), untilAt)));
    void clock.sleep(wholeMs, both).then(
      () => over.abort(),
      () => undefined,
    );
    let left = held;
    try {
      for (let restMs = firstLookMs; left.length > 0; restMs = lookMs) {
        await clock.sleep(restMs, both);
        const looks = await Promise.all(left.map((one) => isStillIn(one, lines, both)));
        left = left.filter((_, place) => looks[place]);
      }
    } catch {
      signal.throwIfAborted();
    } finally {
      over.abort();
    }
    return left;
  }
}

/** A look that fails tells nothing: the next one may. */
async function isStillIn(
  { group, targets }: Held,
  lines: LinesOf,
  signal: AbortSignal,
): Promise<boolean> {
  try {
    const lingering = await of(lines, group).look.ask(group.id, targets, signal);
    const keys = new Set(lingering.map(keyOfTarget));
    return targets.some((target) => keys.has(keyOfTarget(target)));
  } catch {
    signal.throwIfAborted();
    return true;
  }
}

function of(lines: LinesOf, { kind }: TrafficGroup): Lines {
  const found = lines.get(kind);
  assert(found !== undefined, `there is a client of each kind of group, ${kind} too`);
  return found;
}

function throwFailed(ends: readonly PromiseSettledResult<void>[], signal: AbortSignal): void {
  signal.throwIfAborted();
  const failed = ends.find(({ status }) => status === "rejected");
  if (failed?.status === "rejected") throw asFault(failed.reason);
}

/**
 * Where nobody tells the addresses, the groups that hold the instance by its id are left at least.
 */
async function addressesOf(task: ActionTask<Kind>, signal: AbortSignal) {
  try {
    const { node, pods } = await task.target.addresses(signal);
    return { addresses: [...node, ...pods] };
  } catch (error) {
    signal.throwIfAborted();
    return { addresses: [], fault: [asFault(error)] };
  }
}

function linesOf(kind: TrafficGroups, clock: Clock): Lines {
  return {
    kind,
    deregister: new GroupBatches({
      send: (id, targets, signal) => kind.deregister(id, targets, signal),
      clock,
    }),
    look: new GroupBatches({
      send: (id, targets, signal) => kind.lingering(id, targets, signal),
      ...{ clock, lingerMs },
    }),
  };
}

function byGroup(holdings: readonly Holding[]): readonly Held[] {
  const groups = Map.groupBy(holdings, ({ group }) => `${group.kind} ${group.id}`);
  return [...groups.values()].map((some) => {
    const targets = new Map(some.map(({ target }) => [keyOfTarget(target), target]));
    return { group: (some[0] as Holding).group, targets: [...targets.values()] };
  });
}

function undoOf(held: readonly Held[]): Fields {
  const targetsOf = (kind: TrafficGroup["kind"]) =>
    held
      .filter(({ group }) => group.kind === kind)
      .flatMap(({ group, targets }) => targets.map((target) => ({ name: group.id, ...target })));
  const classic = targetsOf("Classic").map(({ name, id }) => ({ name, id }));
  return {
    targets: targetsOf("TargetGroup").map(({ name, id, port }) => ({
      ...{ targetGroupArn: name, id },
      ...(port === undefined ? {} : { port }),
    })),
    ...(classic.length === 0 ? {} : { classicLoadBalancers: classic }),
  };
}

/** What is on record is not owned by anybody else: else it would not be there. */
function holdingsOf(undo: Fields | undefined): readonly Holding[] {
  const holding = (
    entry: unknown,
    kind: TrafficGroup["kind"],
    name: string,
  ): readonly Holding[] => {
    const fields = fieldsOf(entry);
    const [group, id] = [textOf(fields[name]), textOf(fields.id)];
    if (group === undefined || id === undefined) return [];
    const target = { id, port: wholeNumberOf(fields.port) };
    return [{ group: { kind, id: group, byAddress: false, isOwned: false }, target }];
  };
  return [
    ...listOf(undo?.targets).flatMap((one) => holding(one, "TargetGroup", "targetGroupArn")),
    ...listOf(undo?.classicLoadBalancers).flatMap((one) => holding(one, "Classic", "name")),
  ];
}

function detailOf(
  end: Readonly<Record<"ours" | "owned" | "unclear" | "left", readonly Held[]>>,
): string {
  const { ours, owned, unclear, left } = end;
  const all = ours.length + owned.length;
  if (all === 0) return "in no target group or classic load balancer";
  const parts = [
    ...(ours.length === 0 ? [] : [`out of ${counted(ours)}`]),
    ...(unclear.length === 0 ? [] : [`of ${unclear.length} of which the owner could not be read`]),
    ...(owned.length === 0 ? [] : [`left to the label in ${counted(owned)}`]),
    ...(left.length === 0 ? [] : [`${left.length} of ${all} still draining`]),
  ];
  return parts.join(", ");
}

function counted({ length }: readonly Held[]): string {
  return length === 1 ? "1 group" : `${length} groups`;
}
