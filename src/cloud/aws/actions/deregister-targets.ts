import type {
  ActionDone,
  ActionProblem,
  ActionRunner,
  ActionTarget,
  ActionTask,
  PreparedTask,
} from "../../../contracts/action-runner.ts";
import type { Clock } from "../../../contracts/clock.ts";
import { withinTime } from "../../../contracts/time-limit.ts";
import type { Rng } from "../../../core/chance/chance.ts";
import type { Fields } from "../../../core/json/json-field.ts";
import {
  between,
  type Instant,
  type Millis,
  millis,
  minus,
  seconds,
} from "../../../core/time/time.ts";
import { LastcallError } from "../../../errors.ts";
import { asFault } from "../aws-client.ts";
import {
  type Ec2Instances,
  type InRegion,
  instanceOf,
  problemOf,
  stageOf,
} from "../ec2-machine.ts";
import {
  byGroup,
  detailOf,
  detailOfReturn,
  groupRequests,
  type HeldGroup,
  holdingsOf,
  LeavingTargets,
  type LeftGroup,
  notAllRead,
  type RequestsByKind,
  refuseKept,
  requestsFor,
  stillIn,
  undoOf,
  unknownLate,
} from "./leaving-targets.ts";
import type { HoldingsFound, TargetIndex, TrafficMachine } from "./target-index.ts";
import type { TrafficGroups } from "./traffic-groups.ts";

/** The load balancers of a region. */
export interface RegionTraffic {
  readonly index: TargetIndex;
  readonly kinds: readonly TrafficGroups[];
  readonly instances: Pick<Ec2Instances, "instance">;
}

interface Addresses {
  readonly addresses: readonly string[];
  /** Why the addresses are unknown. */
  readonly fault?: LastcallError | undefined;
}

interface FoundHoldings extends HoldingsFound {
  readonly machine: TrafficMachine;
  /** Undefined if no group contains addresses, so that none were looked up. */
  readonly addresses?: Addresses | undefined;
}

interface Newer {
  readonly task: PreparedTask<DeregisterKind>;
  readonly found: FoundHoldings;
  readonly leaving: LeavingTargets;
  readonly traffic: RegionTraffic;
  readonly untilAt: Instant;
}

type DeregisterKind = "deregisterTargets";

/** When each group is first checked; earlier, the evictions of a burst need the CPU. */
const firstLookMs: Millis = seconds(3);

const lookMs: Millis = seconds(5);

/** How long groups that contain the instance id wait for the addresses. */
const addressLimitMs: Millis = seconds(2);

const addressesLate = new LastcallError(
  "ACTION_TIMEOUT",
  `Cannot look up the addresses of the machine: no response within ${addressLimitMs / 1000} s`,
);

/** How long before the end of an attempt to report its progress. */
const marginMs: Millis = seconds(1);

/** Deregisters machines from target groups and classic load balancers, and undoes this. */
export class TargetRunner implements ActionRunner<DeregisterKind> {
  readonly #trafficIn: InRegion<RegionTraffic>;
  readonly #clock: Clock;
  readonly #rng: Rng;
  readonly #requests = new Map<RegionTraffic, RequestsByKind>();
  /** Addresses that `prepare` has looked up for the following `apply`. */
  readonly #lookedUp = new WeakMap<ActionTarget, Addresses>();
  /** The groups that each machine has left, across the attempts of its action. */
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

  /** Checks that the load balancers can be read, which also fills the index for a notice. */
  check(_: unknown, signal: AbortSignal): Promise<ActionProblem | undefined> {
    return problemOf("deregisterTargets", signal, async () => {
      const [fault] = await this.#trafficIn(undefined).index.faults(signal);
      if (fault !== undefined) throw fault;
    });
  }

  /**
   * Finds the registrations to remove; undefined if there are none. If the owner of a group is
   * unknown, the target is deregistered: a terminated target fails requests, while deregistering
   * one that aws-load-balancer-controller removes as well does no harm.
   */
  async prepare(
    task: ActionTask<DeregisterKind>,
    signal: AbortSignal,
  ): Promise<Fields | undefined> {
    const { holdings, addresses } = await this.#find(task, signal);
    if (addresses?.fault === undefined && addresses) this.#lookedUp.set(task.target, addresses);
    const ours = byGroup(holdings.filter(({ group }) => !group.isOwned));
    return ours.length === 0 ? undefined : undoOf(ours);
  }

  /** Deregisters everything possible, then throws the first error. */
  async apply(task: PreparedTask<DeregisterKind>, signal: AbortSignal): Promise<ActionDone> {
    signal.throwIfAborted();
    const traffic = this.#trafficIn(instanceOf(task).region);
    const requests = this.#requestsOf(traffic);
    const out = this.#out.get(task.target) ?? new Set<string>();
    this.#out.set(task.target, out);
    const leaving = new LeavingTargets({ task, requests, out }, signal);
    let found = await this.#find(task, signal);
    await leaving.leave(found.holdings);
    // Reading hundreds of groups takes a while: the machine leaves each as soon as it is read.
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
      task.how.wait ? this.#wait({ held, requests, untilAt }, signal) : [];
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
    refuseKept([...left, ...leftLate].filter(({ group }) => group.isOwned));
    const end = { ours: leaving.groups, owned, unclear, left: [...left, ...leftLate] };
    return { detail: detailOf(end, late.remark) };
  }

  /**
   * Reads the groups again after the burst, because the last reading may be older than a
   * registration, and removes the machine from any others that contain it.
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
      return { held: [], remark: unknownLate("the read timed out") };
    } finally {
      limit.end();
    }
  }

  /** Registers again what still belongs to the machine, if it is running. */
  async undo(task: PreparedTask<DeregisterKind>, signal: AbortSignal): Promise<ActionDone> {
    const { instanceId, region } = instanceOf(task);
    const traffic = this.#trafficIn(region);
    const instance = await traffic.instances.instance(instanceId, signal);
    if (instance === undefined || stageOf(instance) !== "Running") {
      return { detail: "not registered again: the instance no longer runs" };
    }
    // The address of a terminated pod may belong to another pod by now.
    const { addresses, fault } = await addressesOf(task.target, this.#clock, signal);
    const recorded = holdingsOf(task.undo);
    const its = new Set([instanceId, ...addresses]);
    const held = byGroup(recorded.filter(({ target }) => its.has(target.id)));
    const requests = this.#requestsOf(traffic);
    const ends = await Promise.allSettled(
      held.map(async ({ group, targets }) => {
        const { deregister, register } = requestsFor(requests, group);
        await deregister.settled(group.id, signal);
        return register.ask(group.id, targets, signal);
      }),
    );
    if (held.length > 0) traffic.index.readAgain();
    const detail = detailOfReturn(ends, signal);
    // The owner of other addresses is unknown, so another attempt must not skip them.
    const isWhole = recorded.every(({ target }) => its.has(target.id));
    if (fault !== undefined && !isWhole) throw fault;
    return { detail };
  }

  async #find(task: ActionTask<DeregisterKind>, signal: AbortSignal): Promise<FoundHoldings> {
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

  async #findMore(
    task: ActionTask<DeregisterKind>,
    found: FoundHoldings,
    signal: AbortSignal,
  ): Promise<FoundHoldings> {
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

  /** Ends the lookup just before the attempt ends, so that its progress is reported. */
  async #inTime<T>(
    { endsAt }: ActionTask<DeregisterKind>,
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

  /** Looks up again with addresses if a reading has found groups that contain addresses. */
  async #withAddresses(
    task: ActionTask<DeregisterKind>,
    found: FoundHoldings,
    signal: AbortSignal,
  ): Promise<FoundHoldings> {
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
   * Looks up the addresses once for `prepare` and the following `apply`, because in a burst
   * evictions wait behind each request to the cluster.
   */
  async #addresses(
    { target }: ActionTask<DeregisterKind>,
    signal: AbortSignal,
  ): Promise<Addresses> {
    const there = this.#lookedUp.get(target);
    this.#lookedUp.delete(target);
    return there ?? addressesOf(target, this.#clock, signal);
  }

  /** A signal that aborts with another signal, or when time is up. */
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

  #requestsOf(traffic: RegionTraffic): RequestsByKind {
    const tools = { clock: this.#clock, rng: this.#rng };
    const requests =
      this.#requests.get(traffic) ??
      new Map(traffic.kinds.map((kind) => [kind.kind, groupRequests(kind, tools)]));
    this.#requests.set(traffic, requests);
    return requests;
  }

  /** Returns the groups with remaining connections when time is up. */
  async #wait(
    {
      held,
      requests,
      untilAt,
    }: {
      readonly held: readonly HeldGroup[];
      readonly requests: RequestsByKind;
      readonly untilAt: Instant;
    },
    signal: AbortSignal,
  ): Promise<readonly LeftGroup[]> {
    const limit = this.#limit(untilAt, signal);
    let left: readonly LeftGroup[] = held;
    try {
      for (let restMs = firstLookMs; left.length > 0; restMs = lookMs) {
        await this.#clock.sleep(restMs, limit.signal);
        const looks = left.map((one) => stillIn(one, requests, limit.signal));
        left = (await Promise.all(looks)).flatMap((one) => one ?? []);
      }
    } catch {
      signal.throwIfAborted();
    } finally {
      limit.end();
    }
    return left;
  }
}

/**
 * Looks up the addresses. If that fails or takes too long, at least the groups that contain the
 * instance id are left.
 */
async function addressesOf(
  target: ActionTarget,
  clock: Clock,
  signal: AbortSignal,
): Promise<Addresses> {
  const limit = { clock, limitMs: addressLimitMs, late: () => addressesLate };
  try {
    const { node, pods } = await withinTime((until) => target.addresses(until), limit, signal);
    return { addresses: [...node, ...pods] };
  } catch (error) {
    signal.throwIfAborted();
    return { addresses: [], fault: asFault(error) };
  }
}
