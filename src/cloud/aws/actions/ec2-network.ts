/**
 * What actions ask of EC2's networks. Made by `../ec2-client.ts`; contract suite:
 * `test/contract/ec2-network.contract.ts`. All methods read every page, and throw `LastcallError`
 * `CLOUD_*`, or the signal's reason when it aborts.
 */
export interface Ec2Network {
  /** The network interfaces that are attached to these instances; those of others are left out. */
  interfacesOf(
    instanceIds: readonly string[],
    signal: AbortSignal,
  ): Promise<readonly NetworkInterface[]>;
  /** The VPC of each of these security groups; throws CLOUD_REFUSED where one does not exist. */
  vpcsOf(groupIds: readonly string[], signal: AbortSignal): Promise<ReadonlyMap<string, string>>;
  /** Replaces all security groups of the interface; one that is gone is as it should be. */
  setSecurityGroups(
    interfaceId: string,
    groupIds: readonly string[],
    signal: AbortSignal,
  ): Promise<void>;
  /**
   * Asks whether that would be permitted, and throws as it would. `CarriedOut` where whoever
   * answers knows no dry runs; an endpoint need not be AWS' own.
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
  /** All of its IPv4 and IPv6 addresses, those of its IPv4 prefixes as well. */
  readonly addresses: readonly string[];
  readonly groupIds: readonly string[];
}

/** The addresses of an IPv4 block of at most 256, such as `10.0.2.0/28`; none of anything else. */
export function addressesIn(block: string): readonly string[] {
  const [base = "", bits = ""] = block.split("/");
  const parts = base.split(".").map(Number);
  const size = 2 ** (32 - Number(bits));
  if (parts.length !== 4 || !(size >= 1 && size <= 256)) return [];
  const [last = 0] = parts.splice(3);
  return Array.from({ length: size }, (_, place) => [...parts, last + place].join("."));
}
