import { beforeEach, describe, expect, it } from "vitest";
import { minutes, seconds } from "../../src/core/time/time.ts";
import { instanceReleaserContract } from "../contract/instance-releaser.contract.ts";
import { NodeClaimWorld } from "../support/node-claim-world.ts";

instanceReleaserContract("NodeClaimReleaser", async () => new NodeClaimWorld());

const never = new AbortController().signal;
const lastLook = () => Promise.resolve("Clear" as const);
const requestId = "6f9619ff-8b86-4d01-b42d-00cf4fc964ff";
const mode = "NodeClaim";

let world: NodeClaimWorld;
beforeEach(() => {
  world = new NodeClaimWorld();
});

function check(providerID: string) {
  return world.pass(world.releaser.check({ providerID, mode }, never));
}

function release({ providerID, id }: { readonly providerID: string; readonly id: string }) {
  const request = { providerID, machineId: id, mode, requestId, lastLook } as const;
  return world.pass(world.releaser.release(request, never));
}

describe("what is asked before a drain", () => {
  it("names the right that is missing", async () => {
    const { providerID } = world.addMachine("n1");
    world.mayDelete = false;
    const problem = expect.stringContaining("the right delete on nodeclaims.karpenter.sh");
    expect(await check(providerID)).toEqual({ kind: "Impossible", problem });
    expect(world.asked()).toBe(0);
  });

  it("names it for a NodeClaim that Karpenter has only chosen: it may let it stay yet", async () => {
    const { providerID } = world.addMachine("n1");
    claimOf(world, providerID).conditions = [{ type: "DisruptionReason", status: "True" }];
    world.mayDelete = false;
    expect(await check(providerID)).toMatchObject({ kind: "Impossible" });
  });

  it("needs no right for one that is being deleted", async () => {
    const { providerID } = world.addMachine("n1");
    claimOf(world, providerID).deletedAt = "2026-11-20T00:00:00Z";
    world.mayDelete = false;
    expect(await check(providerID)).toEqual({ kind: "Possible", permission: "Unknown" });
  });

  it("throws for good where Karpenter is not installed", async () => {
    const { providerID } = world.addMachine("n1");
    world.isDefined = false;
    await expect(check(providerID)).rejects.toMatchObject({
      code: "CRD_MISSING",
      retryable: false,
      message: expect.stringContaining("nodeclaims.karpenter.sh"),
    });
  });

  it("reads the list once for each machine, and then its NodeClaim alone", async () => {
    const { providerID } = world.addMachine("n1");
    await check(providerID);
    await check(providerID);
    const lists = world.requests.filter(({ path }) => path.endsWith("/nodeclaims"));
    expect(lists).toHaveLength(1);
  });
});

describe("a release", () => {
  it("deletes the one NodeClaim of the machine, by its uid", async () => {
    world.addMachine("n2");
    const machine = world.addMachine("n1");
    await release(machine);
    const [deletion, ...others] = world.requests.filter(({ method }) => method === "DELETE");
    expect(others).toEqual([]);
    expect(deletion).toMatchObject({
      path: "/apis/karpenter.sh/v1/nodeclaims/spot-n1",
      body: { preconditions: { uid: machine.id } },
    });
    expect([...world.claims.keys()]).toEqual(["spot-n2"]);
  });

  it.each([
    ["is already being deleted", (one: NodeClaimWorld, id: string) => one.take(claimOf(one, id))],
    [
      "was chosen by Karpenter's own disruption",
      (one: NodeClaimWorld, id: string) => {
        const claim = claimOf(one, id);
        claim.conditions = [{ type: "DisruptionReason", status: "True", reason: "Empty" }];
        void one.clock.sleep(seconds(5)).then(() => one.take(claim));
      },
    ],
  ])("asks for nothing where the NodeClaim %s, and waits for its end", async (_, make) => {
    const machine = world.addMachine("n1");
    make(world, machine.providerID);
    expect(await release(machine)).toEqual({ kind: "Released" });
    expect(world.asked()).toBe(0);
    expect(world.claims.size).toBe(0);
  });

  it("deletes one whose disruption Karpenter calls off meanwhile", async () => {
    const machine = world.addMachine("n1");
    const claim = claimOf(world, machine.providerID);
    claim.conditions = [{ type: "DisruptionReason", status: "True", reason: "Underutilized" }];
    void world.clock.sleep(minutes(1)).then(() => {
      claim.conditions = [{ type: "DisruptionReason", status: "False" }];
    });
    expect(await release(machine)).toEqual({ kind: "Released" });
    expect(world.asked()).toBe(1);
    expect(world.clock.monotonic()).toBeLessThan(minutes(3));
  });

  it("deletes one of which Karpenter has only thought", async () => {
    const machine = world.addMachine("n1");
    claimOf(world, machine.providerID).conditions = [
      { type: "DisruptionReason", status: "False" },
      { type: "Drifted", status: "True" },
      { type: "Consolidatable", status: "True" },
    ];
    expect(await release(machine)).toEqual({ kind: "Released" });
    expect(world.asked()).toBe(1);
  });

  it("leaves alone one that has taken the name between the look and the deletion", async () => {
    const machine = world.addMachine("n1");
    world.nextDelete = { status: 409, body: { message: "the UID in the precondition differs" } };
    const work = release(machine);
    await world.passUntil(() => world.nextDelete === undefined);
    await world.replace(machine.providerID);
    expect(await work).toEqual({ kind: "Released" });
    expect(world.asked()).toBe(0);
    expect(world.claims.size).toBe(1);
  });

  it("says where to look if Karpenter does not take it, and that asking again can help", async () => {
    const machine = world.addMachine("n1");
    const claim = claimOf(world, machine.providerID);
    claim.deletedAt = "2026-11-20T00:00:00Z";
    await expect(release(machine)).rejects.toMatchObject({
      retryable: true,
      message: expect.stringContaining("kubectl describe nodeclaim spot-n1"),
    });
    expect(world.clock.monotonic()).toBeGreaterThanOrEqual(minutes(20));
  });
});

function claimOf(one: NodeClaimWorld, providerID: string) {
  const claim = one.find(providerID);
  if (claim === undefined) throw new Error(`no NodeClaim of ${providerID}`);
  return claim;
}
