import { describe, expect, it } from "vitest";
import { anothersMachine, nodesOfMachine } from "../../../src/core/cluster/machine-name.ts";

const providerID = "gce://p/europe-west1-b/db-1";
/** As EC2 names its machines. */
const form = /^(?:ip(?:-\d+){4}|i-[0-9a-f]+)$/;
const ec2 = { hosts: ["i-0abc", "ip-10-0-1-2.eu-west-1.compute.internal"], form };

describe("a Node whose providerID is that of a machine", () => {
  it.each([
    ["n-1", { hosts: ["n-1"] }],
    ["N-1", { hosts: ["n-1"] }],
    ["n-1.europe-west1-b.c.p.internal", { hosts: ["n-1"] }],
    ["aks-spot-1-vmss00000A", { hosts: ["aks-spot-1-vmss00000a"] }],
    ["ip-10-0-1-2.eu-west-1.compute.internal", ec2],
    ["ip-10-0-1-2.shop.internal", ec2],
    ["i-0abc", ec2],
    ["i-0abc.eu-west-1.compute.internal", ec2],
  ])("is that machine by its name: %s", (name, names) => {
    expect(anothersMachine({ name, providerID }, names)).toBeUndefined();
  });

  it.each([
    ["n-1", { hosts: ["db-1"] }],
    ["n-1.db-1", { hosts: ["db-1"] }],
    ["db-10", { hosts: ["db-1"] }],
    ["ip-10-0-1-20.eu-west-1.compute.internal", ec2],
    ["i-0abcd", ec2],
  ])("is not that machine, whatever it says: %s", (name, names) => {
    const problem = anothersMachine({ name, providerID }, names);
    expect(problem).toContain(name);
    expect(problem).toContain(names.hosts[0]);
    expect(problem).toContain(providerID);
  });

  it.each([
    ["worker-3", ec2],
    ["worker-3", undefined],
    ["worker-3", { hosts: [] }],
  ])("is not compared if its platform does not name nodes: %s", (name, names) => {
    expect(anothersMachine({ name, providerID }, names)).toBeUndefined();
  });
});

describe("the notice of a machine", () => {
  const guest = { name: "guest", providerID };
  const real = { name: "db-1.c.p.internal", providerID };
  const byAddress = { name: "ip-10-0-1-2", providerID: "aws:///a/i-0abc" };
  const byId = { name: "i-0abc", providerID: "aws:////i-0abc" };
  it.each([
    ["the only Node that names it, whatever its name", [guest], [guest]],
    ["the Node that has its name", [guest, real], [real]],
    ["the Node that has its instance id as its name", [byAddress, byId], [byId]],
    ["all that name it, if none has its name", [guest, byAddress], [guest, byAddress]],
    ["nobody, if no Node names it", [], []],
  ])("applies to %s", (_, nodes, expected) => {
    expect(nodesOfMachine(nodes)).toEqual(expected);
  });
});
