import { BlockList, isIP } from "node:net";
import { knownClouds } from "../cloud/facts/known-clouds.ts";
import { LastcallError } from "../errors.ts";

/** One entry of `--action-hosts`. Without a port, it allows every port. */
export interface HostRule {
  readonly host: string;
  readonly port?: number | undefined;
}

/** The target of a request: a host without brackets or trailing dot, and a port. */
export interface HostAndPort {
  readonly host: string;
  readonly port: number;
}

const form = /^(?<host>(\*\.)?[a-z0-9_]([-a-z0-9_.]*[a-z0-9_])?|\[[0-9a-f:.]+\])(:(?<port>\d+))?$/;

/**
 * Parses `--action-hosts`: comma-separated `host`, `host:port` or `*.domain`. Throws
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

/**
 * Names of metadata services, which a domain does not include: behind a proxy, their addresses are
 * not known here.
 */
const metadataNames = /^(metadata|metadata\.google\.internal|instance-data(\..+)?\.internal)$/;

/** Whether a rule allows the host, by name or by domain. A domain contains no addresses. */
export function isNamed(rules: readonly HostRule[], { host, port }: HostAndPort): boolean {
  const isInDomains = isIP(host) === 0 && !metadataNames.test(host);
  return rules.some((rule) => {
    if (rule.port !== undefined && rule.port !== port) return false;
    if (rule.host.startsWith("*.")) return isInDomains && host.endsWith(rule.host.slice(1));
    return rule.host === host;
  });
}

/** Addresses that must not be reached by a host name: this machine and metadata services. */
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
/** The metadata service of Alibaba Cloud, which is not link-local. */
special.addAddress("100.100.100.200", "ipv4");
for (const [subnet, bits] of [
  ["fe80::", 10],
  ["fec0::", 10],
  ["ff00::", 8],
  // Unspecified, loopback, and encodings of IPv4: compatible, translated (RFC 2765), local-use
  // NAT64 (RFC 8215), Teredo, 6to4. No receiver of actions needs them.
  ["::", 96],
  ["::ffff:0:0:0", 96],
  ["64:ff9b:1::", 48],
  ["2001::", 32],
  ["2002::", 16],
] as const) {
  special.addSubnet(subnet, bits, "ipv6");
}
for (const { subnet, bits } of knownClouds.flatMap(({ metadataAddresses }) => metadataAddresses)) {
  special.addSubnet(subnet, bits, isIP(subnet) === 6 ? "ipv6" : "ipv4");
}

/** The eight words of an IPv6 address; undefined if it has a zone. */
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

/** The NAT64 prefix, with which DNS64 encodes IPv4 addresses on IPv6-only networks. */
const nat64 = "100,65435,0,0,0,0";
/** The start of the lower half of an ISATAP address, which also embeds an IPv4 address. */
const isatap = /^(0|512),24318$/;

/** Whether an address is special. Node's BlockList treats IPv4-mapped addresses as IPv4. */
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
 * Whether a request may go to this address of an allowed host: not to loopback, link-local,
 * unspecified and metadata addresses, unless a rule names the address itself. `localhost` names the
 * loopback addresses.
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

/** Normalizes `[::1]` and `example.com.` to `::1` and `example.com`, as in rules. */
export function bareHost(hostname: string): string {
  return hostname.replace(/^\[|\]$/g, "").replace(/\.$/, "");
}
