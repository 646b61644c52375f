import type { Clock } from "../../../contracts/clock.ts";
import { untilAborted } from "../../../contracts/time-limit.ts";
import { around, backoffMs, type Rng } from "../../../core/chance/chance.ts";
import { type Millis, minutes, seconds } from "../../../core/time/time.ts";
import type { LastcallError } from "../../../errors.ts";
import { asFault, type TroubleListener } from "../aws-client.ts";
import { type Ec2Network, interfacesOfOne, type NetworkInterface } from "../ec2-network.ts";
import type {
  OnBusy,
  ReadingListener,
  Registered,
  Target,
  TrafficGroup,
  TrafficGroups,
} from "./traffic-groups.ts";

export interface TargetIndexOptions {
  /** The kinds of groups to read. */
  readonly kinds: readonly TrafficGroups[];
  readonly network: Pick<Ec2Network, "interfacesOf" | "instance">;
  /** The instances whose VPCs are looked up in advance. */
  readonly machines: () => readonly string[];
  /** An older reading is refreshed before use. Unset if the index is followed. */
  readonly believedMs?: Millis | undefined;
  readonly clock: Clock;
  readonly rng: Rng;
}

export interface TrafficMachine {
  readonly instanceId: string;
  /** The addresses of the machine and of its pods. */
  readonly addresses: readonly string[];
}

/** A registration of the machine in a group. */
export interface Holding {
  readonly group: TrafficGroup;
  readonly target: Target;
}

export interface HoldingsFound {
  readonly holdings: readonly Holding[];
  /** The kinds or groups that could not be read: other groups may contain the machine. */
  readonly faults: readonly LastcallError[];
  /** False while a kind of group is being read for the first time; see `rest`. */
  readonly isWhole: boolean;
}

export const refreshMs: Millis = minutes(5);
/**
 * The refreshes after retryable errors: each reading requests every group of a service that may be
 * overloaded.
 */
const failedRefresh = { firstMs: seconds(30), mostMs: refreshMs };
/**
 * How long a reading retries throttled requests. An account shares ten requests a second, so
 * reading many groups takes a while.
 */
const patientMs: Millis = minutes(4);
const busyMs = { firstMs: seconds(1), mostMs: seconds(4) };
/**
 * How long a reading counts for a machine that is in no group, and for later registrations.
 */
const freshMs: Millis = seconds(30);
/** How long known groups of a machine wait for groups of another kind. */
const behindMs: Millis = seconds(1);
/** How long a machine in no group waits for another reading. */
const missMs: Millis = seconds(5);
/** How long after a notice nothing is read, so that the requests of its burst are sent first. */
const burstMs: Millis = seconds(3);

/** The reading of one kind of group. */
interface IndexPart {
  readonly byTarget: ReadonlyMap<string, readonly Holding[]>;
  readonly groups: readonly Registered[];
  readonly startedMs: number;
  /** The error of groups that have never been read. */
  readonly fault?: LastcallError | undefined;
  /** The error of groups whose owner could not be read. */
  readonly ownerFault?: LastcallError | undefined;
}

interface FirstReading {
  readonly groups: Registered[];
  /** The number of groups to read. */
  listed: number;
}

/**
 * An index of the groups that contain each machine, built in advance: Elastic Load Balancing cannot
 * look up the groups of a machine, and a notice leaves no time to read all groups.
 */
export class TargetIndex {
  readonly #options: TargetIndexOptions;
  readonly #parts = new Map<TrafficGroup["kind"], IndexPart>();
  /** The VPCs of each instance, which never change; a second interface may be in another. */
  readonly #vpcs = new Map<string, ReadonlySet<string>>();
  #refresh: Promise<readonly LastcallError[]> | undefined;
  /** The readings in progress of kinds that had not been read before. */
  readonly #firstRead = new Map<TrafficGroup["kind"], FirstReading>();
  /** The last reading, whatever its result. */
  #last: { readonly startedMs: number; readonly ended: Promise<unknown> } | undefined;
  /** The first error of each kind that the last reading could not read completely. */
  readonly #missed = new Map<TrafficGroup["kind"], LastcallError>();

  constructor(options: TargetIndexOptions) {
    this.#options = options;
  }

  /** Refreshes the index until the signal aborts. Never rejects. */
  async follow(onError: TroubleListener, signal: AbortSignal): Promise<void> {
    const { clock, rng } = this.#options;
    for (let inARow = 0; !signal.aborted; ) {
      const faults = await untilAborted(this.#read(), signal).catch(() => []);
      if (signal.aborted) return;
      for (const fault of faults) onError(fault);
      inARow = faults.some(({ retryable }) => retryable) ? inARow + 1 : 0;
      const restMs =
        inARow === 0 ? around(refreshMs, rng) : backoffMs(inARow - 1, rng, failedRefresh);
      await clock.sleep(restMs, signal).catch(() => undefined);
    }
  }

  /**
   * Finds the groups of a machine. Reads them first if they have not been read, and again if the
   * machine is in none. If one service hangs, the groups of the other are still returned in time.
   */
  async find(machine: TrafficMachine, signal: AbortSignal): Promise<HoldingsFound> {
    const { believedMs = Number.POSITIVE_INFINITY } = this.#options;
    signal.throwIfAborted();
    if (!this.#isRead() || this.#ageMs() > believedMs) await this.#readFor(machine, signal);
    let found = this.#holdings(machine);
    if (found.length === 0 && (this.#hasUnread() || this.#ageMs() > freshMs)) {
      // `lookAgain` waits for a longer reading, after the machine has left the known groups.
      await this.#readWithin(missMs, signal);
      found = this.#holdings(machine);
    }
    return this.#known(machine, found, signal);
  }

  /**
   * Finds the groups again, including those read within a second. Repeat until the result is whole.
   */
  async rest(machine: TrafficMachine, signal: AbortSignal): Promise<HoldingsFound> {
    if (!this.#isRead()) await this.#readWithin(behindMs, signal);
    return this.#known(machine, this.#holdings(machine), signal);
  }

  /** The number of groups read, and of groups to read. */
  get progress(): { readonly read: number; readonly listed: number } {
    const known = [...this.#parts.values()].reduce((sum, { groups }) => sum + groups.length, 0);
    const first = [...this.#firstRead.values()];
    return {
      read: first.reduce((sum, { groups }) => sum + groups.length, known),
      listed: first.reduce((sum, { listed }) => sum + listed, known),
    };
  }

  /**
   * False if the groups are known and none contains addresses, in which case the machine's
   * addresses need not be looked up.
   */
  mayHoldAddresses(): boolean {
    return !this.#isRead() || this.#hasAddresses();
  }

  #hasAddresses(): boolean {
    return [...this.#parts.values()].some(({ groups }) =>
      groups.some(({ group, targets }) => group.byAddress && targets.length > 0),
    );
  }

  async #readFor(machine: TrafficMachine, signal: AbortSignal): Promise<void> {
    do {
      await this.#readWithin(behindMs, signal);
    } while (this.#refresh !== undefined && this.#holdings(machine).length === 0);
  }

  /** Waits for a reading. One that takes longer continues, and others may wait for it. */
  async #readWithin(limitMs: Millis, signal: AbortSignal): Promise<void> {
    const over = new AbortController();
    const late = this.#options.clock.sleep(limitMs, over.signal).catch(() => undefined);
    try {
      await untilAborted(Promise.race([this.#read(), late]), signal);
    } finally {
      over.abort();
    }
  }

  #known(
    machine: TrafficMachine,
    holdings: readonly Holding[],
    signal: AbortSignal,
  ): Promise<HoldingsFound> {
    const faults = [...this.#parts.values()].flatMap(({ fault }) => fault ?? []);
    return this.#inItsVpc(machine, { holdings, faults, isWhole: this.#isRead() }, signal);
  }

  /**
   * Reads the groups again for registrations since the last reading, once for all callers within
   * half a minute, and returns the errors.
   */
  async lookAgain(machine: TrafficMachine, signal: AbortSignal): Promise<HoldingsFound> {
    const isFresh = () => {
      const { startedMs = Number.NEGATIVE_INFINITY } = this.#last ?? {};
      return this.#options.clock.now() - startedMs <= freshMs;
    };
    if (!isFresh()) {
      await this.#options.clock.sleep(burstMs, signal);
      if (!isFresh()) void this.#read();
    }
    await untilAborted(Promise.resolve(this.#last?.ended), signal);
    const faults = [...this.#missed.values()];
    const holdings = this.#holdings(machine);
    return this.#inItsVpc(machine, { holdings, faults, isWhole: this.#isRead() }, signal);
  }

  /** The errors of the last reading. Reads if nothing has been read. */
  async faults(signal: AbortSignal): Promise<readonly LastcallError[]> {
    if (!this.#isRead() || this.#hasUnread()) await untilAborted(this.#read(), signal);
    const parts = [...this.#parts.values()];
    return parts.flatMap(({ fault, ownerFault }) => fault ?? ownerFault ?? []);
  }

  /** Invalidates a reading in progress, which may have missed a registration. */
  readAgain(): void {
    const read = () => void this.#read();
    if (this.#refresh === undefined) read();
    else void this.#refresh.then(read);
  }

  /** The age of the oldest reading. */
  #ageMs(): number {
    const startedMs = [...this.#parts.values()].map((part) => part.startedMs);
    return this.#options.clock.now() - Math.min(...startedMs);
  }

  /** Whether every kind has been read, or tried, so that a notice does not wait for it. */
  #isRead(): boolean {
    return this.#options.kinds.every(({ kind }) => this.#parts.has(kind));
  }

  /** Whether a kind could not be read at all. */
  #hasUnread(): boolean {
    const parts = [...this.#parts.values()];
    return parts.some(({ fault, groups }) => fault !== undefined && groups.length === 0);
  }

  #holdings({ instanceId, addresses }: TrafficMachine): readonly Holding[] {
    const ids = new Set([instanceId, ...addresses]);
    const known = [...this.#parts.values()].flatMap(({ byTarget }) =>
      [...ids].flatMap((id) => byTarget.get(id) ?? []),
    );
    const early = [...this.#firstRead.values()].flatMap(({ groups }) => holdingsIn(groups));
    return [...known, ...early.filter(({ target }) => ids.has(target.id))];
  }

  /** Filters by VPC, because another VPC may use the same addresses for other machines. */
  async #inItsVpc(
    { instanceId }: TrafficMachine,
    found: HoldingsFound,
    signal: AbortSignal,
  ): Promise<HoldingsFound> {
    const { holdings, faults } = found;
    if (!holdings.some(({ group }) => group.byAddress)) return found;
    try {
      const vpcs = this.#vpcs.get(instanceId) ?? (await this.#vpcsOf(instanceId, signal));
      const isIts = ({ group: { byAddress, vpc } }: Holding) =>
        !byAddress || (vpc !== undefined && vpcs.has(vpc));
      return { ...found, holdings: holdings.filter(isIts) };
    } catch (error) {
      signal.throwIfAborted();
      const others = holdings.filter(({ group }) => !group.byAddress);
      return { ...found, holdings: others, faults: [...faults, asFault(error)] };
    }
  }

  async #vpcsOf(instanceId: string, signal: AbortSignal): Promise<ReadonlySet<string>> {
    this.#learnVpcs(await interfacesOfOne(this.#options.network, instanceId, signal));
    return this.#vpcs.get(instanceId) ?? new Set();
  }

  #learnVpcs(interfaces: readonly NetworkInterface[]): void {
    for (const [id, its] of Map.groupBy(interfaces, ({ instanceId }) => instanceId)) {
      this.#vpcs.set(id, new Set(its.map(({ vpc }) => vpc)));
    }
  }

  /** Reads the groups, once at a time for all callers. Never rejects. */
  #read(): Promise<readonly LastcallError[]> {
    if (this.#refresh !== undefined) return this.#refresh;
    const faults = this.#readAll().finally(() => {
      this.#refresh = undefined;
    });
    this.#refresh = faults;
    this.#last = { startedMs: this.#options.clock.now(), ended: faults };
    return faults;
  }

  async #readAll(): Promise<readonly LastcallError[]> {
    // Not a caller's signal, because others wait as well. The clients limit each request.
    const { signal } = new AbortController();
    const reading = this.#options.kinds.map((kind) => this.#readKind(kind, signal));
    const faults = (await Promise.all(reading)).flat();
    const unknown = this.#options.machines().filter((id) => !this.#vpcs.has(id));
    if (!this.#hasAddresses() || unknown.length === 0) return faults;
    try {
      this.#learnVpcs(await this.#options.network.interfacesOf(unknown, signal));
      return faults;
    } catch (error) {
      return [...faults, asFault(error)];
    }
  }

  async #readKind(kind: TrafficGroups, signal: AbortSignal): Promise<readonly LastcallError[]> {
    const startedMs = this.#options.clock.now();
    const former = this.#parts.get(kind.kind);
    const unread: Registered[] = [];
    const faults: LastcallError[] = [];
    this.#missed.delete(kind.kind);
    const missed = (fault: LastcallError) => {
      if (!this.#missed.has(kind.kind)) this.#missed.set(kind.kind, fault);
    };
    let neverRead: LastcallError | undefined;
    let ownerFault: LastcallError | undefined;
    const onError = (about: TrafficGroup | undefined, error: unknown) => {
      const fault = asFault(error);
      if (faults.length === 0) faults.push(fault);
      if (about === undefined) {
        ownerFault = fault;
        return;
      }
      missed(fault);
      const known = former?.groups.find(({ group }) => group.id === about.id);
      if (known === undefined) neverRead ??= fault;
      else unread.push(known);
    };
    const first: FirstReading = { groups: [], listed: 0 };
    if (former === undefined) this.#firstRead.set(kind.kind, first);
    const listener: ReadingListener = {
      onError,
      onListed: (count) => {
        first.listed = count;
      },
      onRead: (one) => {
        if (former === undefined) first.groups.push(one);
      },
      onBusy: this.#onBusy(former, signal),
    };
    try {
      const read = await kind.read(listener, signal);
      const groups = [...read, ...unread];
      this.#parts.set(kind.kind, {
        groups,
        startedMs,
        fault: neverRead,
        ownerFault,
        byTarget: byTarget(groups),
      });
    } catch (error) {
      const fault = asFault(error);
      faults.push(fault);
      missed(fault);
      // An earlier reading stays valid; without one, no notice waits for it again.
      if (former === undefined || (former.fault !== undefined && former.groups.length === 0)) {
        this.#parts.set(kind.kind, { groups: [], startedMs, fault, byTarget: new Map() });
      }
    }
    this.#firstRead.delete(kind.kind);
    return faults;
  }

  /**
   * Whether to retry throttled requests. The first reading does not, because a notice may wait for
   * it; without periodic refresh it does, because it has to be complete.
   */
  #onBusy(former: IndexPart | undefined, signal: AbortSignal): OnBusy | undefined {
    const { clock, rng, believedMs } = this.#options;
    if (former === undefined && believedMs === undefined) return undefined;
    const untilMs = clock.now() + patientMs;
    return async (attempt) => {
      if (clock.now() >= untilMs) return "Enough";
      await clock.sleep(backoffMs(attempt, rng, busyMs), signal);
      return "Again";
    };
  }
}

function byTarget(groups: readonly Registered[]): ReadonlyMap<string, readonly Holding[]> {
  return Map.groupBy(holdingsIn(groups), ({ target }) => target.id);
}

function holdingsIn(groups: readonly Registered[]): readonly Holding[] {
  return groups.flatMap(({ group, targets }) => targets.map((target) => ({ group, target })));
}
