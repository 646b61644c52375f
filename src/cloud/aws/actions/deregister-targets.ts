import type {
  ActionDone,
  ActionProblem,
  ActionRunner,
  ActionTarget,
  ActionTask,
  PreparedTask,
} from "../../../contracts/action-runner.ts";
import type { Clock } from "../../../contracts/clock.ts";
import type { Rng } from "../../../core/chance/rng.ts";
import type { Fields } from "../../../core/json/json-field.ts";
import {
  between,
  type Instant,
  type Millis,
  millis,
  minus,
  seconds,
} from "../../../core/time/time.ts";
import { LastcallError, messageOf } from "../../../errors.ts";
import { asFault } from "../aws-fault.ts";
import { type Ec2Instances, type InRegion, stageOf } from "../ec2-machine.ts";
import { instanceOf, problemOf } from "./action-instance.ts";
import { untilAborted } from "./concurrent.ts";
import {
  byGroup,
  detailOf,
  detailOfReturn,
  type HeldGroup,
  holdingsOf,
  LeavingTargets,
  type LinesOf,
  linesFor,
  linesOf,
  undoOf,
} from "./leaving-targets.ts";
import type { HoldingsFound, TargetIndex, TrafficMachine } from "./target-index.ts";
import { keyOfTarget, type TrafficGroups } from "./traffic-groups.ts";

/** What a region has of load balancers. */
export interface RegionTraffic {
  readonly index: TargetIndex;
  readonly kinds: readonly TrafficGroups[];
  readonly instances: Pick<Ec2Instances, "instances">;
}

interface Addresses {
  readonly addresses: readonly string[];
  /** Why there are none. */
  readonly fault?: LastcallError | undefined;
}

interface Found extends HoldingsFound {
  readonly machine: TrafficMachine;
  /** Absent: nobody was asked, since no group holds any. */
  readonly addresses?: Addresses | undefined;
}

interface Newer {
  readonly task: PreparedTask<Kind>;
  readonly found: Found;
  readonly leaving: LeavingTargets;
  readonly traffic: RegionTraffic;
  readonly untilAt: Instant;
}

type Kind = "deregisterTargets";

/** Of each group: sooner the evictions of a burst of notices need the processor. */
const firstLookMs: Millis = seconds(3);
const lookMs: Millis = seconds(5);
/** So long the groups that hold the machine by its id wait for its addresses. */
const addressLimitMs: Millis = seconds(2);
const addressesLate = new LastcallError(
  "ACTION_TIMEOUT",
  `Cannot look up the addresses of the machine: no answer within ${addressLimitMs / 1000} s`,
);
/** So long before the end of its time the wait says how far it has come. */
const marginMs: Millis = seconds(1);

/** Takes machines out of their target groups and classic load balancers, and puts them back. */
export class TargetRunner implements ActionRunner<Kind> {
  readonly #trafficIn: InRegion<RegionTraffic>;
  readonly #clock: Clock;
  readonly #rng: Rng;
  readonly #lines = new Map<RegionTraffic, LinesOf>();
  /** What `prepare` has looked up for the `apply` that follows it. */
  readonly #lookedUp = new WeakMap<ActionTarget, Addresses>();
  /** Of which groups each machine is out, over all attempts of its action. */
  readonly #out = new WeakMap<ActionTarget, Set<string>>();

  constructor({
    trafficIn,
    clock,
    rng,
  }: {
    readonly trafficIn: InRegion<RegionTraffic>;
    readonly clock: Clock;
    readonly rng: Rng;
  }) {
    this.#trafficIn = trafficIn;
    this.#clock = clock;
    this.#rng = rng;
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
    const { holdings, addresses } = await this.#find(task, signal);
    if (addresses?.fault === undefined && addresses) this.#lookedUp.set(task.target, addresses);
    const ours = byGroup(holdings.filter(({ group }) => !group.isOwned));
    return ours.length === 0 ? undefined : undoOf(ours);
  }

  /** Does all that can be done, and throws what failed first after that. */
  async apply(task: PreparedTask<Kind>, signal: AbortSignal): Promise<ActionDone> {
    signal.throwIfAborted();
    const traffic = this.#trafficIn(instanceOf(task).region);
    const lines = this.#linesOf(traffic);
    const out = this.#out.get(task.target) ?? new Set<string>();
    this.#out.set(task.target, out);
    const leaving = new LeavingTargets({ task, lines, out }, signal);
    let found = await this.#find(task, signal);
    await leaving.leave(found.holdings);
    // Hundreds of groups take their time, and the machine leaves each as soon as that is read.
    while (!found.isWhole) {
      const { faults } = found;
      found = await this.#findMore(task, found, signal);
      found = { ...found, faults: [...faults, ...found.faults] };
      await leaving.leave(found.holdings);
    }
    const refused = await leaving.settled();
    const faults = [...(refused === undefined ? [] : [refused]), ...found.faults];
    const passing = faults.find(({ retryable }) => retryable);
    if (passing !== undefined) throw passing;
    const untilAt = minus(task.endsAt, marginMs);
    const owned = byGroup(found.holdings.filter(({ group }) => group.isOwned));
    const wait = (held: readonly HeldGroup[]) =>
      task.how.wait ? this.#wait({ held, lines, untilAt }, signal) : [];
    const [left, late] = await Promise.all([
      wait([...leaving.groups, ...owned]),
      this.#leaveNewer({ task, found, leaving, traffic, untilAt }, signal),
    ]);
    const leftLate = await wait(late.held);
    const [fault] = faults;
    if (fault !== undefined) throw fault;
    const unclear = [...byGroup(found.holdings), ...late.held].filter(
      ({ group }) => group.isOwned === undefined,
    );
    const end = { ours: leaving.groups, owned, unclear, left: [...left, ...leftLate] };
    return { detail: detailOf(end, late.remark) };
  }

  /**
   * The groups as they were read last may be older than a registration: once the burst is over they
   * are read again, and what holds the machine beside those that are known is left, too.
   */
  async #leaveNewer(
    { task, found, leaving, traffic, untilAt }: Newer,
    signal: AbortSignal,
  ): Promise<{ readonly held: readonly HeldGroup[]; readonly remark?: string }> {
    const limit = this.#limit(untilAt, signal);
    try {
      const again = await traffic.index.lookAgain(found.machine, limit.signal);
      const known = { ...found, ...again };
      const { holdings, faults } = await this.#withAddresses(task, known, limit.signal);
      const held = await leaving.leave(holdings);
      const refused = await leaving.settled();
      if (refused !== undefined) throw refused;
      const [fault] = faults;
      return fault === undefined ? { held } : { held, remark: unknownLate(fault) };
    } catch (error) {
      signal.throwIfAborted();
      if (!limit.signal.aborted) throw error;
      return { held: [], remark: unknownLate("it was not read in time") };
    } finally {
      limit.end();
    }
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
    const { addresses, fault } = await addressesOf(task.target, this.#clock, signal);
    const recorded = holdingsOf(task.undo);
    const its = new Set([instanceId, ...addresses]);
    const held = byGroup(recorded.filter(({ target }) => its.has(target.id)));
    const lines = this.#linesOf(traffic);
    const ends = await Promise.allSettled(
      held.map(async ({ group, targets }) => {
        const { deregister, register } = linesFor(lines, group);
        await deregister.settled(group.id, signal);
        return register.ask(group.id, targets, signal);
      }),
    );
    if (held.length > 0) traffic.index.readAgain();
    const detail = detailOfReturn(ends, signal);
    // Whose the other addresses are is not known, and not for another attempt to forget.
    const isWhole = recorded.every(({ target }) => its.has(target.id));
    if (fault !== undefined && !isWhole) throw fault;
    return { detail };
  }

  async #find(task: ActionTask<Kind>, signal: AbortSignal): Promise<Found> {
    signal.throwIfAborted();
    const { instanceId, region } = instanceOf(task);
    const { index } = this.#trafficIn(region);
    const addresses = index.mayHoldAddresses() ? await this.#addresses(task, signal) : undefined;
    const machine = { instanceId, addresses: addresses?.addresses ?? [] };
    const nothing: HoldingsFound = { holdings: [], faults: [], isWhole: false };
    const { faults, ...found } = await this.#inTime(
      task,
      { look: (until) => index.find(machine, until), late: () => nothing },
      signal,
    );
    const all = [...faults, ...(addresses?.fault === undefined ? [] : [addresses.fault])];
    return this.#withAddresses(task, { ...found, faults: all, machine, addresses }, signal);
  }

  async #findMore(task: ActionTask<Kind>, found: Found, signal: AbortSignal): Promise<Found> {
    const { index } = this.#trafficIn(instanceOf(task).region);
    const rest = await this.#inTime(
      task,
      {
        look: (until) => index.rest(found.machine, until),
        late: () => {
          throw notAllRead(index.progress);
        },
      },
      signal,
    );
    return this.#withAddresses(task, { ...found, ...rest }, signal);
  }

  /** What it finds a moment before the attempt ends, so that it is told how far that has come. */
  async #inTime<T>(
    { endsAt }: ActionTask<Kind>,
    how: { readonly look: (until: AbortSignal) => Promise<T>; readonly late: () => T },
    signal: AbortSignal,
  ): Promise<T> {
    const limit = this.#limit(minus(endsAt, marginMs), signal);
    try {
      return await how.look(limit.signal);
    } catch (error) {
      signal.throwIfAborted();
      if (!limit.signal.aborted) throw error;
      return how.late();
    } finally {
      limit.end();
    }
  }

  /** The same where a reading since has found groups that hold addresses. */
  async #withAddresses(task: ActionTask<Kind>, found: Found, signal: AbortSignal): Promise<Found> {
    const { instanceId, region } = instanceOf(task);
    const { index } = this.#trafficIn(region);
    if (found.addresses !== undefined || !index.mayHoldAddresses()) return found;
    const addresses = await this.#addresses(task, signal);
    const machine = { instanceId, addresses: addresses.addresses };
    const { faults, ...rest } = await index.rest(machine, signal);
    const all = [...faults, ...(addresses.fault === undefined ? [] : [addresses.fault])];
    return { ...rest, faults: all, machine, addresses };
  }

  /**
   * In a burst of notices each question to the cluster is one that evictions wait for: it is asked
   * once for `prepare` and the `apply` behind it.
   */
  async #addresses({ target }: ActionTask<Kind>, signal: AbortSignal): Promise<Addresses> {
    const there = this.#lookedUp.get(target);
    this.#lookedUp.delete(target);
    return there ?? addressesOf(target, this.#clock, signal);
  }

  /** Aborts with the signal, and when the time is up. */
  #limit(untilAt: Instant, signal: AbortSignal) {
    const over = new AbortController();
    const both = AbortSignal.any([signal, over.signal]);
    const wholeMs = millis(Math.max(0, between(this.#clock.now(), untilAt)));
    void this.#clock.sleep(wholeMs, both).then(
      () => over.abort(),
      () => undefined,
    );
    return { signal: both, end: () => over.abort() };
  }

  #linesOf(traffic: RegionTraffic): LinesOf {
    const tools = { clock: this.#clock, rng: this.#rng };
    const lines =
      this.#lines.get(traffic) ??
      new Map(traffic.kinds.map((kind) => [kind.kind, linesOf(kind, tools)]));
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
      readonly held: readonly HeldGroup[];
      readonly lines: LinesOf;
      readonly untilAt: Instant;
    },
    signal: AbortSignal,
  ): Promise<readonly HeldGroup[]> {
    const limit = this.#limit(untilAt, signal);
    let left = held;
    try {
      for (let restMs = firstLookMs; left.length > 0; restMs = lookMs) {
        await this.#clock.sleep(restMs, limit.signal);
        const looks = await Promise.all(left.map((one) => isStillIn(one, lines, limit.signal)));
        left = left.filter((_, place) => looks[place]);
      }
    } catch {
      signal.throwIfAborted();
    } finally {
      limit.end();
    }
    return left;
  }
}

/** A look that fails tells nothing: the next one may. */
async function isStillIn(
  { group, targets }: HeldGroup,
  lines: LinesOf,
  signal: AbortSignal,
): Promise<boolean> {
  try {
    const lingering = await linesFor(lines, group).look.ask(group.id, targets, signal);
    const keys = new Set(lingering.map(keyOfTarget));
    return targets.some((target) => keys.has(keyOfTarget(target)));
  } catch {
    signal.throwIfAborted();
    return true;
  }
}

/**
 * Where nobody tells the addresses, or not in time, the groups that hold the instance by its id are
 * left at least.
 */
async function addressesOf(
  target: ActionTarget,
  clock: Clock,
  signal: AbortSignal,
): Promise<Addresses> {
  const over = new AbortController();
  const both = AbortSignal.any([signal, over.signal]);
  clock.sleep(addressLimitMs, both).then(
    () => over.abort(addressesLate),
    () => undefined,
  );
  try {
    const { node, pods } = await untilAborted(target.addresses(both), both);
    return { addresses: [...node, ...pods] };
  } catch (error) {
    signal.throwIfAborted();
    return { addresses: [], fault: asFault(error) };
  } finally {
    over.abort();
  }
}

/** Another attempt goes on with the same reading. */
function notAllRead({ read, listed }: TargetIndex["progress"]): LastcallError {
  const problem = "Cannot find all groups of the machine in the time of the attempt";
  const told =
    listed === 0
      ? "Elastic Load Balancing has not listed them yet"
      : `${read} of ${listed} are read, give the action a longer timeout`;
  return new LastcallError("ACTION_TIMEOUT", `${problem}: ${told}`);
}

function unknownLate(why: LastcallError | string): string {
  const told = typeof why === "string" ? why : messageOf(why);
  return `what was registered in the last minutes is not known: ${told}`;
}
