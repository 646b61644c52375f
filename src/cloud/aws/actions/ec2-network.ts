/**
 * The part of EC2 networking that actions need. Implemented by `../ec2-client.ts`; contract suite:
 * `test/contract/ec2-network.contract.ts`. All methods read every page and throw `CLOUD_*` errors,
 * or the signal's reason when it aborts.
 */
export interface Ec2Network {
  /** The network interfaces attached to these instances. */
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

/** The addresses of an IPv4 block of up to 256, such as `10.0.2.0/28`; none for other input. */
export function addressesIn(block: string): readonly string[] {
  const [base = "", bits = ""] = block.split("/");
  const parts = base.split(".").map(Number);
  const size = 2 ** (32 - Number(bits));
  if (parts.length !== 4 || !(size >= 1 && size <= 256)) return [];
  const [last = 0] = parts.splice(3);
  return Array.from({ length: size }, (_, place) => [...parts, last + place].join("."));
}
