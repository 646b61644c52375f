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
import { asFault } from "../aws-client.ts";
import { type InRegion, instanceOf, type KnownInstances, problemOf } from "../ec2-machine.ts";
import { type Ec2Network, interfacesOfOne, type NetworkInterface } from "../ec2-network.ts";

type GroupsKind = "replaceSecurityGroups";

const groupField = "replaceSecurityGroups.groupIds";
/** The number of instances whose interfaces are checked in advance: one page of EC2's API. */
const mostLookedAt = 50;

interface FormerGroups {
  readonly id: string;
  readonly groupIds: readonly string[];
}

/**
 * Quarantines an instance: replaces the security groups of its network interfaces. An interface
 * that already has the new groups was changed by an earlier process, and only its record contains
 * the former ones.
 */
export class SecurityGroupRunner implements ActionRunner<GroupsKind> {
  readonly #networkIn: InRegion<Ec2Network>;
  readonly #known: KnownInstances;
  readonly #exchanges: GroupExchanges;
  /** The VPC of each known group, which never changes. */
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

  /** Checks that the groups exist, are in the VPC of known machines, and may be set. */
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
    if (new Set(vpcs.values()).size > 1) return wrongVpc(vpcs, "groups in one VPC");
    if (first === undefined) return undefined;
    const beside = others.filter(({ region }) => region === first.region);
    const some = spread([first, ...beside], mostLookedAt).map(({ instanceId }) => instanceId);
    let interfaces: readonly NetworkInterface[] = [];
    const unseen = await problemOf("replaceSecurityGroups", signal, async () => {
      interfaces = await network.interfacesOf(some, signal);
      if (interfaces.length === 0) await interfacesOfOne(network, first.instanceId, signal);
    });
    const vpcOfGroups = vpcs.get(groupIds[0] ?? "");
    const one = interfaces.find(({ vpc }) => vpc === vpcOfGroups);
    if (unseen !== undefined || interfaces.length === 0) return unseen;
    if (one === undefined) {
      const theirs = [...new Set(interfaces.map(({ vpc }) => vpc))].join(" or ");
      return wrongVpc(vpcs, `groups in the machines' VPC, which is ${theirs}`);
    }
    return problemOf("replaceSecurityGroups", signal, () => tryOn(network, one, groupIds, signal));
  }

  /** Throws before any change if a group does not exist or is in another VPC. */
  async prepare(task: ActionTask<GroupsKind>, signal: AbortSignal): Promise<Fields | undefined> {
    const { groupIds } = task.how;
    const { instanceId, region } = instanceOf(task);
    const network = this.#networkIn(region);
    const [interfaces, vpcs] = await Promise.all([
      interfacesOfOne(network, instanceId, signal),
      this.#vpcsOf(network, groupIds, signal),
    ]);
    checkVpcs(interfaces, vpcs);
    const changed = interfaces.filter((one) => !this.#isThere(one, groupIds));
    if (changed.length === 0) return undefined;
    return recordOf(changed.map((one) => this.#exchanges.formerOf(one)));
  }

  async apply(task: PreparedTask<GroupsKind>, signal: AbortSignal): Promise<ActionDone> {
    const { groupIds } = task.how;
    const recorded = formerGroups(task.undo);
    signal.throwIfAborted();
    const { instanceId, region } = instanceOf(task);
    const network = this.#networkIn(region);
    const ids = new Set(recorded.map(({ id }) => id));
    const standing = await interfacesOfOne(network, instanceId, signal);
    const unchanged = standing.filter((one) => !this.#isThere(one, groupIds));
    const change = (some: readonly FormerGroups[]) =>
      eachTried(some, (former) => {
        this.#exchanges.begin(former, groupIds);
        return network.setSecurityGroups(former.id, groupIds, signal);
      });
    const toChange = new Set(unchanged.map(({ id }) => id));
    await change(recorded.filter(({ id }) => toChange.has(id)));
    // Interfaces attached since then are recorded first, so that their former groups are known.
    const found = task.keep === undefined ? [] : unchanged.filter(({ id }) => !ids.has(id));
    const newer = found.map((one) => this.#exchanges.formerOf(one));
    if (newer.length > 0) {
      checkVpcs(found, await this.#vpcsOf(network, groupIds, signal));
      await task.keep?.(recordOf([...recorded, ...newer]));
      signal.throwIfAborted();
      await change(newer);
    }
    const count = recorded.length + newer.length;
    if (standing.length === 0) return { detail: "the instance has no network interface" };
    if (count === 0) return { detail: "every network interface already has these groups" };
    return { detail: `${groupIds.join(", ")} on ${counted(count)}` };
  }

  /** Whether the interface has the groups. Right after an undo, EC2 may show stale ones. */
  #isThere(one: NetworkInterface, groupIds: readonly string[]): boolean {
    return hasGroups(one, groupIds) && !this.#exchanges.isJustBack(one);
  }

  /** Looks up only unknown groups. EC2 rejects one that has been deleted since. */
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

  /** Restores the former groups of the interfaces that still belong to the instance. */
  async undo(task: PreparedTask<GroupsKind>, signal: AbortSignal): Promise<ActionDone> {
    const { instanceId, region } = instanceOf(task);
    const network = this.#networkIn(region);
    const standing = await interfacesOfOne(network, instanceId, signal);
    // All of them, even if the groups already match: an abandoned change may still take effect.
    const restored = formerGroups(task.undo).filter(({ id }) =>
      standing.some((one) => one.id === id),
    );
    await eachTried(restored, async ({ id, groupIds }) => {
      this.#exchanges.end(id);
      try {
        await network.setSecurityGroups(id, groupIds, signal);
      } catch (error) {
        signal.throwIfAborted();
        // An interface that could not be changed need not be restored.
        const isAsItWas = standing.some((one) => one.id === id && hasGroups(one, groupIds));
        if (!isAsItWas || asFault(error).retryable) throw error;
      }
    });
    return { detail: `the former security groups on ${counted(restored.length)}` };
  }
}

/** How long EC2 may show the groups from before the last change. */
const staleMs: Millis = minutes(5);
/** More interfaces than are quarantined at any time. The oldest are dropped first. */
const mostExchanges = 10_000;

interface GroupExchange {
  readonly former: readonly string[];
  readonly named: readonly string[];
  /** When it was undone; undefined while in effect. */
  readonly endedAt?: Instant;
}

/**
 * The group changes of this process. The groups that an interface shows may be Lastcall's own
 * quarantine, by another action or one that has just been undone. Recorded as the former groups of
 * the next quarantine, they would replace the real ones for good.
 */
class GroupExchanges {
  readonly #clock: Clock;
  readonly #byInterface = new Map<string, GroupExchange>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The groups to restore. */
  formerOf({ id, groupIds }: NetworkInterface): FormerGroups {
    const known = this.#standing(id);
    const isOurs = known !== undefined && isSameSet(groupIds, known.named);
    return { id, groupIds: isOurs ? known.former : groupIds };
  }

  /** Whether the shown groups may be stale after an undo. */
  isJustBack({ id }: NetworkInterface): boolean {
    return this.#standing(id)?.endedAt !== undefined;
  }

  /** Called before the change, which may succeed without a response. */
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

  #standing(id: string): GroupExchange | undefined {
    const known = this.#byInterface.get(id);
    if (known?.endedAt === undefined) return known;
    return between(known.endedAt, this.#clock.now()) <= staleMs ? known : undefined;
  }
}

/**
 * Checks change and undo by EC2's dry run, first with the current groups: if the endpoint does not
 * support dry runs, that changes nothing, and the check stops there.
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

/** A sample spread over all items. */
function spread<T>(items: readonly T[], most: number): readonly T[] {
  const step = Math.max(1, items.length / most);
  return items.filter((_, place) => Math.floor(place / step) !== Math.floor((place - 1) / step));
}

function recordOf(former: readonly FormerGroups[]): Fields {
  return { networkInterfaces: former.map(({ id, groupIds }) => ({ id, groupIds })) };
}

/** The recorded groups, without interfaces that had none. */
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
        `Cannot replace the security groups of ${id}: ${group} is in ${its} and the interface is in ${vpc}, use a group of the same VPC`,
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

/** Tries all interfaces, then throws the first error, which names those that were changed. */
async function eachTried(
  items: readonly FormerGroups[],
  work: (item: FormerGroups) => Promise<void>,
): Promise<void> {
  const ends = await Promise.allSettled(items.map(work));
  const failed = ends.find(({ status }) => status === "rejected");
  if (failed?.status !== "rejected") return;
  const fault = asFault(failed.reason);
  const done = items.filter((_, place) => ends[place]?.status === "fulfilled");
  if (done.length === 0) throw fault;
  const { code, message, retryable, retryAfterMs } = fault;
  const told = `${message}; changed: ${done.map(({ id }) => id).join(", ")}`;
  throw new LastcallError(code, told, { retryable, retryAfterMs });
}

function counted(count: number): string {
  return count === 1 ? "1 network interface" : `${count} network interfaces`;
}
