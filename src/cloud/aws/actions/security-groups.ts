import type {
  ActionDone,
  ActionProblem,
  ActionRunner,
  ActionTask,
  PreparedTask,
} from "../../../contracts/action-runner.ts";
import type { Clock } from "../../../contracts/clock.ts";
import { type Fields, fieldsOf, listOf, textOf } from "../../../core/json/json-field.ts";
import type { ReplaceSecurityGroups } from "../../../core/policy/action.ts";
import { between, type Instant, type Millis, minutes } from "../../../core/time/time.ts";
import { LastcallError } from "../../../errors.ts";
import { asFault } from "../aws-fault.ts";
import type { InRegion } from "../ec2-machine.ts";
import { instanceOf, type KnownInstances, problemOf } from "./action-instance.ts";
import type { Ec2Network, NetworkInterface } from "./ec2-network.ts";

type Kind = "replaceSecurityGroups";

const groupField = "replaceSecurityGroups.groupIds";
/** Of so many machines the interfaces are looked at before any departure: one page of EC2's. */
const mostLookedAt = 50;

interface FormerGroups {
  readonly id: string;
  readonly groupIds: readonly string[];
}

/**
 * Quarantine: the security groups of every network interface of an instance are replaced. An
 * interface that has the named groups already was changed by an earlier run, whose record alone
 * knows the former ones.
 */
export class SecurityGroupRunner implements ActionRunner<Kind> {
  readonly #networkIn: InRegion<Ec2Network>;
  readonly #known: KnownInstances;
  readonly #exchanges: GroupExchanges;
  /** The VPC of each group that has been looked up, which it keeps for good. */
  readonly #vpcs = new Map<string, string>();

  constructor({
    networkIn,
    known = () => [],
    clock,
  }: {
    readonly networkIn: InRegion<Ec2Network>;
    readonly known?: KnownInstances;
    readonly clock: Clock;
  }) {
    this.#networkIn = networkIn;
    this.#known = known;
    this.#exchanges = new GroupExchanges(clock);
  }

  /** Whether the groups exist, could be those of machines that are known, and may be set. */
  async check(
    { groupIds }: ReplaceSecurityGroups,
    signal: AbortSignal,
  ): Promise<ActionProblem | undefined> {
    const [first, ...others] = this.#known();
    const network = this.#networkIn(first?.region);
    let vpcs: ReadonlyMap<string, string> = new Map();
    const unknown = await problemOf(groupField, signal, async () => {
      vpcs = await this.#lookUp(network, groupIds, signal);
    });
    if (unknown !== undefined) return unknown;
    if (new Set(vpcs.values()).size > 1) return wrongVpc(vpcs, "groups of one VPC");
    if (first === undefined) return undefined;
    const beside = others.filter(({ region }) => region === first.region);
    const some = spread([first, ...beside], mostLookedAt).map(({ instanceId }) => instanceId);
    let interfaces: readonly NetworkInterface[] = [];
    const unseen = await problemOf("replaceSecurityGroups", signal, async () => {
      interfaces = await network.interfacesOf(some, signal);
    });
    const vpcOfGroups = vpcs.get(groupIds[0] ?? "");
    const one = interfaces.find(({ vpc }) => vpc === vpcOfGroups);
    if (unseen !== undefined || interfaces.length === 0) return unseen;
    if (one === undefined) {
      const theirs = [...new Set(interfaces.map(({ vpc }) => vpc))].join(" or ");
      return wrongVpc(vpcs, `groups of the machines' VPC, which is ${theirs}`);
    }
    return problemOf("replaceSecurityGroups", signal, () => tryOn(network, one, groupIds, signal));
  }

  /** Throws where a group does not exist, or is of another VPC, before anything is changed. */
  async prepare(task: ActionTask<Kind>, signal: AbortSignal): Promise<Fields | undefined> {
    const { groupIds } = task.how;
    const { instanceId, region } = instanceOf(task);
    const network = this.#networkIn(region);
    const [interfaces, vpcs] = await Promise.all([
      network.interfacesOf([instanceId], signal),
      this.#vpcsOf(network, groupIds, signal),
    ]);
    checkVpcs(interfaces, vpcs);
    const changed = interfaces.filter((one) => !this.#isThere(one, groupIds));
    if (changed.length === 0) return undefined;
    return recordOf(changed.map((one) => this.#exchanges.formerOf(one)));
  }

  async apply(task: PreparedTask<Kind>, signal: AbortSignal): Promise<ActionDone> {
    const { groupIds } = task.how;
    const recorded = formerGroups(task.undo);
    signal.throwIfAborted();
    const { instanceId, region } = instanceOf(task);
    const network = this.#networkIn(region);
    const ids = new Set(recorded.map(({ id }) => id));
    const standing = await network.interfacesOf([instanceId], signal);
    const unchanged = standing.filter((one) => !this.#isThere(one, groupIds));
    const change = (some: readonly FormerGroups[]) =>
      eachTried(some, (former) => {
        this.#exchanges.begin(former, groupIds);
        return network.setSecurityGroups(former.id, groupIds, signal);
      });
    const toChange = new Set(unchanged.map(({ id }) => id));
    await change(recorded.filter(({ id }) => toChange.has(id)));
    // Attached since the record was made. Unrecorded, nobody would know its former groups.
    const found = task.keep === undefined ? [] : unchanged.filter(({ id }) => !ids.has(id));
    const newer = found.map((one) => this.#exchanges.formerOf(one));
    if (newer.length > 0) {
      checkVpcs(found, await this.#vpcsOf(network, groupIds, signal));
      await task.keep?.(recordOf([...recorded, ...newer]));
      signal.throwIfAborted();
      await change(newer);
    }
    const count = recorded.length + newer.length;
    if (standing.length === 0)
      return { detail: "no network interface is attached to the instance" };
    if (count === 0) return { detail: "every network interface has these groups already" };
    return { detail: `${groupIds.join(", ")} on ${counted(count)}` };
  }

  /** What EC2 shows may be older than the way back of a moment ago. */
  #isThere(one: NetworkInterface, groupIds: readonly string[]): boolean {
    return hasGroups(one, groupIds) && !this.#exchanges.isJustBack(one);
  }

  /** Asked at a notice only where no look before has told it: one that is gone since is refused. */
  async #vpcsOf(
    network: Ec2Network,
    groupIds: readonly string[],
    signal: AbortSignal,
  ): Promise<ReadonlyMap<string, string>> {
    const areKnown = groupIds.every((id) => this.#vpcs.has(id));
    if (!areKnown) return this.#lookUp(network, groupIds, signal);
    return new Map(groupIds.map((id) => [id, this.#vpcs.get(id) ?? ""]));
  }

  async #lookUp(
    network: Ec2Network,
    groupIds: readonly string[],
    signal: AbortSignal,
  ): Promise<ReadonlyMap<string, string>> {
    const found = await network.vpcsOf(groupIds, signal);
    for (const [id, vpc] of found) this.#vpcs.set(id, vpc);
    return found;
  }

  /** Gives each interface that is still the instance's the groups that it had. */
  async undo(task: PreparedTask<Kind>, signal: AbortSignal): Promise<ActionDone> {
    const { instanceId, region } = instanceOf(task);
    const network = this.#networkIn(region);
    const standing = await network.interfacesOf([instanceId], signal);
    // Also where they are there: a change that was given up on may still come into effect.
    const restored = formerGroups(task.undo).filter(({ id }) =>
      standing.some((one) => one.id === id),
    );
    await eachTried(restored, async ({ id, groupIds }) => {
      this.#exchanges.end(id);
      try {
        await network.setSecurityGroups(id, groupIds, signal);
      } catch (error) {
        signal.throwIfAborted();
        // One that could not be changed may not be changed back either.
        const isAsItWas = standing.some((one) => one.id === id && hasGroups(one, groupIds));
        if (!isAsItWas || asFault(error).retryable) throw error;
      }
    });
    return { detail: `the former security groups on ${counted(restored.length)}` };
  }
}

/** So long EC2 may show the groups that an interface had before the last change. */
const staleMs: Millis = minutes(5);
/** More than are quarantined at a time; the oldest are forgotten first. */
const mostExchanges = 10_000;

interface Exchange {
  readonly former: readonly string[];
  readonly named: readonly string[];
  /** When it was undone; absent while it is in effect. */
  readonly endedAt?: Instant;
}

/**
 * Which groups this process has exchanged for which: what an interface shows may be a quarantine of
 * ours, by another action or one that has just been undone. Recorded as the former groups of the
 * next one, it would lose the real ones for ever.
 */
class GroupExchanges {
  readonly #clock: Clock;
  readonly #byInterface = new Map<string, Exchange>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The groups to which it is to come back. */
  formerOf({ id, groupIds }: NetworkInterface): FormerGroups {
    const known = this.#standing(id);
    const isOurs = known !== undefined && isSameSet(groupIds, known.named);
    return { id, groupIds: isOurs ? known.former : groupIds };
  }

  /** Whether what it shows may be of before its way back. */
  isJustBack({ id }: NetworkInterface): boolean {
    return this.#standing(id)?.endedAt !== undefined;
  }

  /** Before the change: one without an answer may have been made. */
  begin({ id, groupIds }: FormerGroups, named: readonly string[]): void {
    this.#byInterface.delete(id);
    this.#byInterface.set(id, { former: groupIds, named });
    const [oldest] = this.#byInterface.keys();
    if (oldest !== undefined && this.#byInterface.size > mostExchanges) {
      this.#byInterface.delete(oldest);
    }
  }

  end(id: string): void {
    const known = this.#byInterface.get(id);
    if (known) this.#byInterface.set(id, { ...known, endedAt: this.#clock.now() });
  }

  #standing(id: string): Exchange | undefined {
    const known = this.#byInterface.get(id);
    if (known?.endedAt === undefined) return known;
    return between(known.endedAt, this.#clock.now()) <= staleMs ? known : undefined;
  }
}

/**
 * Both ways, by EC2's dry run: first with the groups that it has, as for the way back. That changes
 * nothing even where whoever answers knows no dry runs, and then it stays at that.
 */
async function tryOn(
  network: Ec2Network,
  { id, groupIds: former }: NetworkInterface,
  groupIds: readonly string[],
  signal: AbortSignal,
): Promise<void> {
  const way =
    former.length === 0 ? "Permitted" : await network.trySecurityGroups(id, former, signal);
  if (way === "Permitted") await network.trySecurityGroups(id, groupIds, signal);
}

function wrongVpc(vpcs: ReadonlyMap<string, string>, wanted: string): ActionProblem {
  const found = [...vpcs].map(([group, vpc]) => `${group} of ${vpc}`).join(" and ");
  return { code: "CLOUD_REFUSED", field: groupField, found, wanted };
}

/** So many of these, from all over them. */
function spread<T>(items: readonly T[], most: number): readonly T[] {
  const step = Math.max(1, items.length / most);
  return items.filter((_, place) => Math.floor(place / step) !== Math.floor((place - 1) / step));
}

function recordOf(former: readonly FormerGroups[]): Fields {
  return { networkInterfaces: former.map(({ id, groupIds }) => ({ id, groupIds })) };
}

/** As it was recorded; what has no group to go back to is left as it is. */
function formerGroups(undo: Fields | undefined): readonly FormerGroups[] {
  return listOf(undo?.networkInterfaces).flatMap((entry) => {
    const { id, groupIds } = fieldsOf(entry);
    const former = {
      id: textOf(id) ?? "",
      groupIds: listOf(groupIds).flatMap((one) => textOf(one) ?? []),
    };
    return former.id === "" || former.groupIds.length === 0 ? [] : [former];
  });
}

function checkVpcs(
  interfaces: readonly NetworkInterface[],
  vpcs: ReadonlyMap<string, string>,
): void {
  for (const { id, vpc } of interfaces) {
    for (const [group, its] of vpcs) {
      if (its === vpc) continue;
      throw new LastcallError(
        "CLOUD_REFUSED",
        `Cannot replace the security groups of ${id}: ${group} is in ${its} and the interface in ${vpc}, name a group of the same VPC`,
      );
    }
  }
}

function hasGroups({ groupIds }: NetworkInterface, wanted: readonly string[]): boolean {
  return isSameSet(groupIds, wanted);
}

function isSameSet(some: readonly string[], others: readonly string[]): boolean {
  const set = new Set(others);
  return some.length === set.size && some.every((id) => set.has(id));
}

/** One interface that is refused must not keep the others; what failed first is thrown then. */
async function eachTried<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const ends = await Promise.allSettled(items.map(work));
  const failed = ends.find(({ status }) => status === "rejected");
  if (failed?.status === "rejected") throw asFault(failed.reason);
}

function counted(count: number): string {
  return count === 1 ? "1 network interface" : `${count} network interfaces`;
}
