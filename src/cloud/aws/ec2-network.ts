import { LastcallError } from "../../errors.ts";
import { type Ec2Instances, stageOf } from "./ec2-machine.ts";

/**
 * The part of EC2 networking that actions need. Implemented by `ec2-client.ts`; contract suite:
 * `test/contract/ec2-network.contract.ts`. All methods read every page and throw `CLOUD_*` errors,
 * or the signal's reason when it aborts.
 */
export interface Ec2Network extends Pick<Ec2Instances, "instance"> {
  /** The network interfaces attached to these instances; for one of them see `interfacesOfOne`. */
  interfacesOf(
    instanceIds: readonly string[],
    signal: AbortSignal,
  ): Promise<readonly NetworkInterface[]>;
  /** The VPC of each security group. Throws CLOUD_REFUSED if one does not exist. */
  vpcsOf(groupIds: readonly string[], signal: AbortSignal): Promise<ReadonlyMap<string, string>>;
  /** Replaces all security groups of the interface. Succeeds if the interface is gone. */
  setSecurityGroups(
    interfaceId: string,
    groupIds: readonly string[],
    signal: AbortSignal,
  ): Promise<void>;
  /**
   * Checks the permission by a dry run, and throws as the call would. `CarriedOut` if the endpoint,
   * which may not be AWS, does not support dry runs.
   */
  trySecurityGroups(
    interfaceId: string,
    groupIds: readonly string[],
    signal: AbortSignal,
  ): Promise<"Permitted" | "CarriedOut">;
}

export interface NetworkInterface {
  readonly id: string;
  readonly instanceId: string;
  readonly vpc: string;
  /** All IPv4 and IPv6 addresses, including those of IPv4 prefixes. */
  readonly addresses: readonly string[];
  readonly groupIds: readonly string[];
}

/**
 * The network interfaces of an instance; none only if it is gone or going. A running instance has
 * at least one, so an empty list says nothing about it: throws a retryable CLOUD_REFUSED.
 */
export async function interfacesOfOne(
  network: Pick<Ec2Network, "interfacesOf" | "instance">,
  instanceId: string,
  signal: AbortSignal,
): Promise<readonly NetworkInterface[]> {
  const found = await network.interfacesOf([instanceId], signal);
  if (found.length > 0) return found;
  const instance = await network.instance(instanceId, signal);
  if (instance === undefined || stageOf(instance) !== "Running") return [];
  throw new LastcallError(
    "CLOUD_REFUSED",
    `Cannot read the network interfaces of ${instanceId}: EC2 lists none although ${instanceId} is ${instance.state}, expected at least one; retrying`,
    { retryable: true },
  );
}

/** The addresses of an IPv4 block of up to 256, such as `10.0.2.0/28`; none for other input. */
export function addressesIn(block: string): readonly string[] {
  const [base = "", bits = ""] = block.split("/");
  const parts = base.split(".").map(Number);
  const size = 2 ** (32 - Number(bits));
  if (parts.length !== 4 || !(size >= 1 && size <= 256)) return [];
  const [last = 0] = parts.splice(3);
  return Array.from({ length: size }, (_, place) => [...parts, last + place].join("."));
}
