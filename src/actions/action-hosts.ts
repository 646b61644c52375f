import { BlockList, isIP } from "node:net";
import { LastcallError } from "../errors.ts";

/** One entry of `--action-hosts`; without a port every port is meant. */
export interface HostRule {
  readonly host: string;
  readonly port?: number | undefined;
}

/** Where a request goes: a host without brackets or a last dot, and a port. */
export interface HostAndPort {
  readonly host: string;
  readonly port: number;
}

const form = /^(?<host>(\*\.)?[a-z0-9_]([-a-z0-9_.]*[a-z0-9_])?|\[[0-9a-f:.]+\])(:(?<port>\d+))?$/;

/**
 * Reads `--action-hosts`: `host`, `host:port` or `*.domain`, with commas between. Throws
 * CONFIG_INVALID.
 */
export function parseActionHosts(text: string): readonly HostRule[] {
  const entries = text.split(",").map((entry) => entry.trim());
  return entries.filter(Boolean).map((entry) => {
    const { host, port } = form.exec(entry.toLowerCase())?.groups ?? {};
    const number = port === undefined ? undefined : Number(port);
    if (host === undefined || (number !== undefined && (number < 1 || number > 65_535))) {
      throw new LastcallError(
        "CONFIG_INVALID",
        `Cannot use --action-hosts: found ${JSON.stringify(entry)}, expected host, host:port or *.domain`,
      );
    }
    return { host: bareHost(host), port: number };
  });
}

/** Whether a host is named, by itself or by its domain. */
export function isNamed(rules: readonly HostRule[], { host, port }: HostAndPort): boolean {
  return rules.some((rule) => {
    if (rule.port !== undefined && rule.port !== port) return false;
    if (rule.host.startsWith("*.")) return host.endsWith(rule.host.slice(1));
    return rule.host === host;
  });
}

/** Addresses that a policy must not reach by a name: this machine, and what tells its secrets. */
const special = new BlockList();
for (const [subnet, bits] of [
  ["0.0.0.0", 8],
  ["127.0.0.0", 8],
  ["169.254.0.0", 16],
  ["224.0.0.0", 4],
  ["240.0.0.0", 4],
] as const) {
  special.addSubnet(subnet, bits, "ipv4");
}
/** The metadata services of Alibaba Cloud and Azure's host, which are no link-local addresses. */
special.addAddress("100.100.100.200", "ipv4");
special.addAddress("168.63.129.16", "ipv4");
for (const [subnet, bits] of [
  ["::", 127],
  ["fe80::", 10],
  ["ff00::", 8],
  // Metadata and Pod Identity of EC2, metadata of Compute Engine.
  ["fd00:ec2::", 32],
  ["fd20:ce::", 32],
  // IPv4 by another name: compatible, NAT64, 6to4. One that is mapped is judged as IPv4.
  ["::", 96],
  ["64:ff9b::", 96],
  ["64:ff9b:1::", 48],
  ["2002::", 16],
] as const) {
  special.addSubnet(subnet, bits, "ipv6");
}

/**
 * Whether a request may go to this address of a host that is named: anything but loopback,
 * link-local, unspecified and metadata addresses, unless the address is named itself. `localhost`
 * names the loopback addresses.
 */
export function mayReach(
  rules: readonly HostRule[],
  to: HostAndPort & { readonly address: string },
): boolean {
  const { host, port, address } = to;
  const family = isIP(address) === 6 ? "ipv6" : "ipv4";
  if (!special.check(address, family)) return true;
  if (isNamed(rules, { host: address.toLowerCase(), port })) return true;
  const isLoopback = address === "::1" || address.startsWith("127.");
  return host === "localhost" && isLoopback && isNamed(rules, { host, port });
}

/** As a rule has it: `[::1]` and `example.com.` as `::1` and `example.com`. */
export function bareHost(hostname: string): string {
  return hostname.replace(/^\[|\]$/g, "").replace(/\.$/, "");
}
