import type { Clock } from "../../../contracts/clock.ts";
import { around, backoffMs } from "../../../core/chance/backoff.ts";
import type { Rng } from "../../../core/chance/rng.ts";
import { type Millis, millis, minutes, seconds } from "../../../core/time/time.ts";
import type { LastcallError } from "../../../errors.ts";
import { asFault } from "../aws-fault.ts";
import { untilAborted } from "./concurrent.ts";
import type { Ec2Network } from "./ec2-network.ts";
import type {
  OnBusy,
  ReadingListener,
  Registered,
  Target,
  TrafficGroup,
  TrafficGroups,
} from "./traffic-groups.ts";

export interface TargetIndexOptions {
  /** Each kind of group that is looked at. */
  readonly kinds: readonly TrafficGroups[];
  readonly network: Pick<Ec2Network, "interfacesOf">;
  /** The instances whose VPC is learnt beforehand. */
  readonly machines: () => readonly string[];
  /** What is older is read again before it is believed; absent: somebody follows it. */
  readonly believedMs?: Millis | undefined;
  readonly clock: Clock;
  readonly rng: Rng;
}

export interface TrafficMachine {
  readonly instanceId: string;
  /** Its own addresses, and those of the pods on it. */
  readonly addresses: readonly string[];
}

/** A target of the machine's, in a group that holds it. */
export interface Holding {
  readonly group: TrafficGroup;
  readonly target: Target;
}

export interface HoldingsFound {
  readonly holdings: readonly Holding[];
  /** What could not be looked at: a group more may hold the machine. */
  readonly faults: readonly LastcallError[];
  /** False where a kind of group is still being read for the first time: `rest` has that. */
  readonly isWhole: boolean;
}

export const refreshMs: Millis = minutes(5);
/**
 * What failed for a reason that may pass is read again sooner, and while it fails later and later:
 * each reading asks for every group, of a service that may be busy.
 */
const firstRefreshMs: Millis = seconds(30);
/**
 * An account may ask ten things in a second, with all that runs in it: a reading of many groups
 * takes its time, and for so long it asks again where it has asked too often.
 */
const patientMs: Millis = minutes(4);
const busyMs = { firstMs: seconds(1), mostMs: seconds(4) };
/**
 * A look that is younger than this is believed of a machine that is in no group, and of what was
 * registered since.
 */
const freshMs: Millis = seconds(30);
/** So long the groups that are known to hold a machine wait for those of another kind. */
const behindMs: Millis = seconds(1);
/** So long a machine that is in no group waits for another reading. */
const missMs: Millis = seconds(5);
/** So long after a notice nothing is read: others of its burst have their requests sent first. */
const burstMs: Millis = seconds(3);

/** What was read of one kind of group. */
interface Part {
  readonly byTarget: ReadonlyMap<string, readonly Holding[]>;
  readonly groups: readonly Registered[];
  readonly startedMs: number;
  /** Of the groups of which nothing has ever been read. */
  readonly fault?: LastcallError | undefined;
  /** Of those whose owner could not be read. */
  readonly ownerFault?: LastcallError | undefined;
}

interface FirstReading {
  readonly groups: Registered[];
  /** How many there are to read. */
  listed: number;
}

type TroubleListener = (error: LastcallError) => void;

/**
 * Which groups hold which machines, known beforehand: Elastic Load Balancing cannot be asked for
 * the groups of a machine, and at a notice there is no time to ask each.
 */
export class TargetIndex {
  readonly #options: TargetIndexOptions;
  readonly #parts = new Map<TrafficGroup["kind"], Part>();
  /** An instance stays in its VPC; a second network interface may be in another. */
  readonly #vpcs = new Map<string, ReadonlySet<string>>();
  #refresh: Promise<readonly LastcallError[]> | undefined;
  /** What is read of the kinds of which nothing had been read before. */
  readonly #firstRead = new Map<TrafficGroup["kind"], FirstReading>();
  /** The reading that was begun last, whatever it has come to. */
  #last: { readonly startedMs: number; readonly ended: Promise<unknown> } | undefined;
  /** Of each kind whose targets the last reading could not read, or not all, the first fault. */
  readonly #missed = new Map<TrafficGroup["kind"], LastcallError>();

  constructor(options: TargetIndexOptions) {
    this.#options = options;
  }

  /** Reads all of it again and again, until the signal aborts. Never rejects. */
  async follow(onError: TroubleListener, signal: AbortSignal): Promise<void> {
    const { clock, rng } = this.#options;
    for (let inARow = 0; !signal.aborted; ) {
      const faults = await untilAborted(this.#read(), signal).catch(() => []);
      if (signal.aborted) return;
      for (const fault of faults) onError(fault);
      inARow = faults.some(({ retryable }) => retryable) ? inARow + 1 : 0;
      const restMs = inARow === 0 ? refreshMs : restAfter(inARow);
      await clock.sleep(around(restMs, rng), signal).catch(() => undefined);
    }
  }

  /**
   * Reads the groups first where they have not been read, and again for a machine that is in none.
   * One service that hangs does not keep the machine in the groups of the other.
   */
  async find(machine: TrafficMachine, signal: AbortSignal): Promise<HoldingsFound> {
    const { believedMs = Number.POSITIVE_INFINITY } = this.#options;
    signal.throwIfAborted();
    if (!this.#isRead() || this.#ageMs() > believedMs) await this.#readFor(machine, signal);
    let found = this.#holdings(machine);
    if (found.length === 0 && (this.#hasUnread() || this.#ageMs() > freshMs)) {
      // One that takes longer is waited for by `lookAgain`, when what is known has been left.
      await this.#readWithin(missMs, signal);
      found = this.#holdings(machine);
    }
    return this.#known(machine, found, signal);
  }

  /** The same with what has been read in the next second; it is whole some day. */
  async rest(machine: TrafficMachine, signal: AbortSignal): Promise<HoldingsFound> {
    if (!this.#isRead()) await this.#readWithin(behindMs, signal);
    return this.#known(machine, this.#holdings(machine), signal);
  }

  /** How many groups have been read, of how many. */
  get progress(): { readonly read: number; readonly listed: number } {
    const known = [...this.#parts.values()].reduce((sum, { groups }) => sum + groups.length, 0);
    const first = [...this.#firstRead.values()];
    return {
      read: first.reduce((sum, { groups }) => sum + groups.length, known),
      listed: first.reduce((sum, { listed }) => sum + listed, known),
    };
  }

  /**
   * False where the groups are known and none of them holds an address: a machine's own need not be
   * asked for then.
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

  /** A reading that takes longer goes on, and others may wait for it. */
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
   * For what has been registered since the groups were read: has them read again, once for all who
   * ask within half a minute, and gives what went wrong with that.
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

  /** What cannot be looked at, as far as it has been tried; tries it where nothing was read. */
  async faults(signal: AbortSignal): Promise<readonly LastcallError[]> {
    if (!this.#isRead() || this.#hasUnread()) await untilAborted(this.#read(), signal);
    const parts = [...this.#parts.values()];
    return parts.flatMap(({ fault, ownerFault }) => fault ?? ownerFault ?? []);
  }

  /** Something has been registered: a reading that is under way may have missed it. */
  readAgain(): void {
    const read = () => void this.#read();
    if (this.#refresh === undefined) read();
    else void this.#refresh.then(read);
  }

  /** Of what was read the longest time ago. */
  #ageMs(): number {
    const startedMs = [...this.#parts.values()].map((part) => part.startedMs);
    return this.#options.clock.now() - Math.min(...startedMs);
  }

  /** Whether each kind of group has been read, or tried: at a notice nobody waits for it again. */
  #isRead(): boolean {
    return this.#options.kinds.every(({ kind }) => this.#parts.has(kind));
  }

  /** Whether there is a kind of which nothing could be read. */
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

  /** Another VPC may have the same addresses for other machines. */
  async #inItsVpc(
    { instanceId }: TrafficMachine,
    found: HoldingsFound,
    signal: AbortSignal,
  ): Promise<HoldingsFound> {
    const { holdings, faults } = found;
    if (!holdings.some(({ group }) => group.byAddress)) return found;
    try {
      if (!this.#vpcs.has(instanceId)) await this.#learnVpcs([instanceId], signal);
      const vpcs = this.#vpcs.get(instanceId);
      const isIts = ({ group: { byAddress, vpc } }: Holding) =>
        !byAddress || (vpc !== undefined && vpcs?.has(vpc) === true);
      return { ...found, holdings: holdings.filter(isIts) };
    } catch (error) {
      signal.throwIfAborted();
      const others = holdings.filter(({ group }) => !group.byAddress);
      return { ...found, holdings: others, faults: [...faults, asFault(error)] };
    }
  }

  async #learnVpcs(instanceIds: readonly string[], signal: AbortSignal): Promise<void> {
    const interfaces = await this.#options.network.interfacesOf(instanceIds, signal);
    for (const [id, its] of Map.groupBy(interfaces, ({ instanceId }) => instanceId)) {
      this.#vpcs.set(id, new Set(its.map(({ vpc }) => vpc)));
    }
  }

  /** However many ask for it, the groups are read once at a time. Never rejects. */
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
    // Nobody's signal: others wait for it as well. The clients bound each request.
    const { signal } = new AbortController();
    const reading = this.#options.kinds.map((kind) => this.#readKind(kind, signal));
    const faults = (await Promise.all(reading)).flat();
    const unknown = this.#options.machines().filter((id) => !this.#vpcs.has(id));
    if (!this.#hasAddresses() || unknown.length === 0) return faults;
    try {
      await this.#learnVpcs(unknown, signal);
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
      // What was read before stays valid; where nothing was read, no notice waits for it again.
      if (former === undefined || (former.fault !== undefined && former.groups.length === 0)) {
        this.#parts.set(kind.kind, { groups: [], startedMs, fault, byTarget: new Map() });
      }
    }
    this.#firstRead.delete(kind.kind);
    return faults;
  }

  /**
   * Nothing is known before the first reading ends, and a notice may wait for it: it takes what it
   * gets at once. Where nobody reads them again and again, it has to have them all.
   */
  #onBusy(former: Part | undefined, signal: AbortSignal): OnBusy | undefined {
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

function restAfter(failedInARow: number): Millis {
  return millis(Math.min(refreshMs, firstRefreshMs * 2 ** (failedInARow - 1)));
}

function byTarget(groups: readonly Registered[]): ReadonlyMap<string, readonly Holding[]> {
  return Map.groupBy(holdingsIn(groups), ({ target }) => target.id);
}

function holdingsIn(groups: readonly Registered[]): readonly Holding[] {
  return groups.flatMap(({ group, targets }) => targets.map((target) => ({ group, target })));
}
