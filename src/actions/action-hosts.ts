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
  ["fe80::", 10],
  ["fec0::", 10],
  ["ff00::", 8],
  // Metadata and Pod Identity of EC2, metadata of Compute Engine.
  ["fd00:ec2::", 32],
  ["fd20:ce::", 32],
  // Unspecified, loopback, and IPv4 by another name: compatible, translated (RFC 2765), NAT64 of a
  // site (RFC 8215), Teredo, 6to4. Nothing that is reached so needs an action to be told there.
  ["::", 96],
  ["::ffff:0:0:0", 96],
  ["64:ff9b:1::", 48],
  ["2001::", 32],
  ["2002::", 16],
] as const) {
  special.addSubnet(subnet, bits, "ipv6");
}

/** The eight words of an address of IPv6; undefined for one with a zone. */
function wordsOf(address: string): readonly number[] | undefined {
  const bare = URL.parse(`http://[${address}]`)?.hostname.slice(1, -1);
  if (bare === undefined) return undefined;
  const [head = [], tail = []] = bare.split("::").map((part) =>
    part
      .split(":")
      .filter(Boolean)
      .map((word) => Number.parseInt(word, 16)),
  );
  return [...head, ...Array<number>(8 - head.length - tail.length).fill(0), ...tail];
}

/** NAT64's own prefix, by which a name of IPv4 is told where there is only IPv6 (DNS64). */
const nat64 = "100,65435,0,0,0,0";
/** How the lower half of an address of ISATAP begins, which holds one of IPv4, too. */
const isatap = /^(0|512),24318$/;

/** An IPv4 address that is mapped into IPv6 is judged by Node's list as the IPv4 address. */
function isSpecial(address: string): boolean {
  if (isIP(address) !== 6) return special.check(address, "ipv4");
  const words = wordsOf(address);
  if (words === undefined || special.check(address, "ipv6")) return true;
  const [high = 0, low = 0] = words.slice(6);
  if (words.slice(0, 6).join() === nat64) {
    return special.check([high >> 8, high & 255, low >> 8, low & 255].join("."), "ipv4");
  }
  return isatap.test(words.slice(4, 6).join());
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
  if (!isSpecial(address)) return true;
  if (isNamed(rules, { host: address.toLowerCase(), port })) return true;
  const isLoopback = address === "::1" || address.startsWith("127.");
  return host === "localhost" && isLoopback && isNamed(rules, { host, port });
}

/** As a rule has it: `[::1]` and `example.com.` as `::1` and `example.com`. */
export function bareHost(hostname: string): string {
  return hostname.replace(/^\[|\]$/g, "").replace(/\.$/, "");
}
