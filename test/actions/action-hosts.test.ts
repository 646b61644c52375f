import { describe, expect, it } from "vitest";
import { isNamed, mayReach, parseActionHosts } from "../../src/actions/action-hosts.ts";

describe("--action-hosts", () => {
  it.each([
    ["hooks.example", "hooks.example", 443, true],
    ["hooks.example", "hooks.example", 8080, true],
    ["hooks.example", "a.hooks.example", 443, false],
    ["hooks.example:443", "hooks.example", 443, true],
    ["hooks.example:443", "hooks.example", 8443, false],
    ["*.example", "hooks.example", 443, true],
    ["*.example", "a.b.example", 443, true],
    ["*.example", "example", 443, false],
    ["*.example", "hooks.example.evil", 443, false],
    ["*.example", "hooksexample", 443, false],
    ["*.1", "127.0.0.1", 443, false],
    ["*.internal", "alertmanager.internal", 443, true],
    ["*.internal", "metadata.google.internal", 80, false],
    ["*.internal", "instance-data.ec2.internal", 80, false],
    ["metadata.google.internal", "metadata.google.internal", 80, true],
    ["HOOKS.example", "hooks.example", 443, true],
    ["127.0.0.1:9093", "127.0.0.1", 9093, true],
    ["[::1]:9093", "::1", 9093, true],
    ["a.example, b.example:1 ,", "b.example", 1, true],
    ["", "hooks.example", 443, false],
  ])("with %j: %s on port %i is allowed: %s", (rules, host, port, allowed) => {
    expect(isNamed(parseActionHosts(rules), { host, port })).toBe(allowed);
  });

  it.each(["https://hooks.example", "hooks.example/x", "*", "*example", "a:0", "a:70000", "a b"])(
    "rejects %j",
    (entry) => {
      expect(() => parseActionHosts(entry)).toThrow(
        `Cannot use --action-hosts: found ${JSON.stringify(entry)}, expected host, host:port or *.domain`,
      );
    },
  );

  it.each([
    ...["127.0.0.1", "127.8.8.8", "0.0.0.0", "169.254.169.254", "169.254.170.2"],
    ...["100.100.100.200", "168.63.129.16", "224.0.0.1", "255.255.255.255"],
    ...["::1", "::", "fe80::1", "febf::1", "fd00:ec2::254", "fd20:ce::254", "ff02::1"],
    ...["::ffff:169.254.169.254", "::ffff:7f00:1", "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::1"],
    ...["::127.0.0.1", "::ffff:0:a9fe:a9fe", "2001:0:4136:e378:8000:63bf:3fff:fdd2"],
    ...["64:ff9b:1::a9fe:a9fe", "64:ff9b::7f00:1", "fec0::1", "2001:db8::5efe:a9fe:a9fe"],
    "2001:db8::200:5efe:a9fe:a9fe",
  ])("keeps a host name from resolving to %s, unless the address itself is allowed", (address) => {
    const to = { host: "hooks.example", port: 443, address };
    const byName = parseActionHosts("hooks.example,*.example,*.1,*.254,*.2");
    expect(mayReach(byName, to)).toBe(false);
    const named = address.includes(":") ? `[${address}]` : address;
    expect(mayReach(parseActionHosts(`hooks.example,${named}`), to)).toBe(true);
    expect(mayReach(parseActionHosts(`hooks.example,${named}:80`), to)).toBe(false);
  });

  it("keeps a host name from resolving to a link-local address with a zone", () => {
    const to = { host: "hooks.example", port: 443, address: "fe80::1%eth0" };
    expect(mayReach(parseActionHosts("hooks.example"), to)).toBe(false);
  });

  it.each([
    "10.0.0.1",
    "192.168.1.1",
    "172.16.0.1",
    "8.8.8.8",
    "fd12::1",
    "2600::1",
    "64:ff9b::8.8.8.8",
  ])("lets a host name resolve to %s", (address) => {
    const to = { host: "hooks.example", port: 443, address };
    expect(mayReach(parseActionHosts("hooks.example"), to)).toBe(true);
  });

  it("lets localhost resolve to the loopback addresses, and to no others", () => {
    const rules = parseActionHosts("localhost");
    const at = (address: string) => mayReach(rules, { host: "localhost", port: 80, address });
    expect([at("127.0.0.1"), at("::1"), at("169.254.169.254")]).toEqual([true, true, false]);
  });
});
