import { beforeEach, describe, expect, it } from "vitest";
import { minutes, seconds } from "../../src/core/time/time.ts";
import { instanceReleaserContract } from "../contract/instance-releaser.contract.ts";
import { NodeClaimWorld } from "../support/node-claim-world.ts";

instanceReleaserContract("NodeClaimReleaser", async () => new NodeClaimWorld());

const never = new AbortController().signal;
const lastLook = () => Promise.resolve("Clear" as const);
const requestId = "6f9619ff-8b86-4d01-b42d-00cf4fc964ff";
const mode = "NodeClaim";
const denied = 'admission webhook "guard.example.com" denied the request: not now';

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

describe("the check before a drain", () => {
  it("names the missing permission", async () => {
    const { providerID } = world.addMachine("n1");
    world.mayDelete = false;
    const problem = expect.stringContaining("the permission delete on nodeclaims.karpenter.sh");
    expect(await check(providerID)).toEqual({ kind: "Impossible", problem });
    expect(world.asked()).toBe(0);
  });

  it("requires it for a NodeClaim that Karpenter has only selected, as it may still keep it", async () => {
    const { providerID } = world.addMachine("n1");
    claimOf(world, providerID).conditions = [{ type: "DisruptionReason", status: "True" }];
    world.mayDelete = false;
    expect(await check(providerID)).toMatchObject({ kind: "Impossible" });
  });

  it("requires no permission for a NodeClaim that is being deleted", async () => {
    const { providerID } = world.addMachine("n1");
    claimOf(world, providerID).deletedAt = "2026-11-20T00:00:00Z";
    world.mayDelete = false;
    expect(await check(providerID)).toMatchObject({ kind: "Possible", permission: "Unknown" });
  });

  it("throws a permanent error if Karpenter is not installed", async () => {
    const { providerID } = world.addMachine("n1");
    world.isDefined = false;
    await expect(check(providerID)).rejects.toMatchObject({
      code: "CRD_MISSING",
      retryable: false,
      message: expect.stringContaining("nodeclaims.karpenter.sh"),
    });
  });

  it("lists the NodeClaims once per machine, and then reads only its own", async () => {
    const { providerID } = world.addMachine("n1");
    await check(providerID);
    await check(providerID);
    const lists = world.requests.filter(({ path }) => path.endsWith("/nodeclaims"));
    expect(lists).toHaveLength(1);
  });
});

describe("a release", () => {
  it("deletes only the NodeClaim of the machine, by its uid", async () => {
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
      "is being disrupted by Karpenter",
      (one: NodeClaimWorld, id: string) => {
        const claim = claimOf(one, id);
        claim.conditions = [{ type: "DisruptionReason", status: "True", reason: "Empty" }];
        void one.clock.sleep(seconds(5)).then(() => one.take(claim));
      },
    ],
  ])("requests nothing if the NodeClaim %s, and waits for its end", async (_, make) => {
    const machine = world.addMachine("n1");
    make(world, machine.providerID);
    expect(await release(machine)).toEqual({ kind: "Released" });
    expect(world.asked()).toBe(0);
    expect(world.claims.size).toBe(0);
  });

  it("deletes a NodeClaim whose disruption Karpenter cancels meanwhile", async () => {
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

  it("deletes a NodeClaim that Karpenter only considers for disruption", async () => {
    const machine = world.addMachine("n1");
    claimOf(world, machine.providerID).conditions = [
      { type: "DisruptionReason", status: "False" },
      { type: "Drifted", status: "True" },
      { type: "Consolidatable", status: "True" },
    ];
    expect(await release(machine)).toEqual({ kind: "Released" });
    expect(world.asked()).toBe(1);
  });

  it("leaves a NodeClaim alone that got the name between the check and the deletion", async () => {
    const machine = world.addMachine("n1");
    const message = "the UID in the precondition differs";
    world.nextDelete = { status: 409, body: { reason: "Conflict", message } };
    const work = release(machine);
    await world.passUntil(() => world.nextDelete === undefined);
    await world.replace(machine.providerID);
    expect(await work).toEqual({ kind: "Released" });
    expect(world.asked()).toBe(0);
    expect(world.claims.size).toBe(1);
  });

  it("fails in the words of a webhook that denies the deletion with 409", async () => {
    const machine = world.addMachine("n1");
    world.nextDelete = { status: 409, body: { reason: "Conflict", message: denied } };
    await expect(release(machine)).rejects.toMatchObject({ code: "API_REFUSED", retryable: false });
    expect(world.claims.size).toBe(1);
  });

  it("says where to look if Karpenter does not terminate the machine, and can be retried", async () => {
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
