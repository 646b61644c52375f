import type {
  ActionDone,
  ActionProblem,
  ActionRunner,
  ActionTask,
  PreparedTask,
} from "../../../contracts/action-runner.ts";
import { type Fields, fieldsOf, listOf, textOf } from "../../../core/json/json-field.ts";
import type { ReplaceSecurityGroups } from "../../../core/policy/action.ts";
import { LastcallError } from "../../../errors.ts";
import { asFault } from "../aws-fault.ts";
import type { InRegion } from "../ec2-machine.ts";
import { type AnyInstance, instanceOf, problemOf } from "./action-instance.ts";
import type { Ec2Network, NetworkInterface } from "./ec2-network.ts";

type Kind = "replaceSecurityGroups";

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
  readonly #anyInstance: AnyInstance;

  constructor(networkIn: InRegion<Ec2Network>, anyInstance: AnyInstance = () => undefined) {
    this.#networkIn = networkIn;
    this.#anyInstance = anyInstance;
  }

  /**
   * Whether the groups exist, and interfaces may be looked at; of which VPC the groups have to be,
   * only the machine tells.
   */
  async check(
    { groupIds }: ReplaceSecurityGroups,
    signal: AbortSignal,
  ): Promise<ActionProblem | undefined> {
    const unknown = await problemOf("replaceSecurityGroups.groupIds", signal, async () => {
      await this.#networkIn(undefined).vpcsOf(groupIds, signal);
    });
    const any = this.#anyInstance();
    if (unknown !== undefined || any === undefined) return unknown;
    return problemOf("replaceSecurityGroups", signal, async () => {
      await this.#networkIn(any.region).interfacesOf([any.instanceId], signal);
    });
  }

  /** Throws where a group does not exist, or is of another VPC, before anything is changed. */
  async prepare(task: ActionTask<Kind>, signal: AbortSignal): Promise<Fields | undefined> {
    const { groupIds } = task.how;
    const { instanceId, region } = instanceOf(task);
    const network = this.#networkIn(region);
    const [interfaces, vpcs] = await Promise.all([
      network.interfacesOf([instanceId], signal),
      network.vpcsOf(groupIds, signal),
    ]);
    checkVpcs(interfaces, vpcs);
    const changed = interfaces.filter((one) => !hasGroups(one, groupIds));
    if (changed.length === 0) return undefined;
    return recordOf(changed);
  }

  async apply(task: PreparedTask<Kind>, signal: AbortSignal): Promise<ActionDone> {
    const { groupIds } = task.how;
    const recorded = formerGroups(task.undo);
    signal.throwIfAborted();
    const { instanceId, region } = instanceOf(task);
    const network = this.#networkIn(region);
    const ids = new Set(recorded.map(({ id }) => id));
    const standing = await network.interfacesOf([instanceId], signal);
    const unchanged = standing.filter((one) => !hasGroups(one, groupIds));
    const change = (some: readonly NetworkInterface[]) =>
      eachTried(some, ({ id }) => network.setSecurityGroups(id, groupIds, signal));
    await change(unchanged.filter(({ id }) => ids.has(id)));
    // Attached since the record was made. Unrecorded, nobody would know its former groups.
    const newer = task.keep === undefined ? [] : unchanged.filter(({ id }) => !ids.has(id));
    if (newer.length > 0) {
      checkVpcs(newer, await network.vpcsOf(groupIds, signal));
      await task.keep?.(recordOf([...recorded, ...newer]));
      signal.throwIfAborted();
      await change(newer);
    }
    const count = recorded.length + newer.length;
    if (count === 0) return { detail: "every network interface has these groups already" };
    return { detail: `${groupIds.join(", ")} on ${counted(count)}` };
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
    await eachTried(restored, ({ id, groupIds }) =>
      network.setSecurityGroups(id, groupIds, signal),
    );
    return { detail: `the former security groups on ${counted(restored.length)}` };
  }
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
  const set = new Set(wanted);
  return groupIds.length === set.size && groupIds.every((id) => set.has(id));
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
