import { describe, expect, it } from "vitest";
import { decide } from "../../../src/core/decide.ts";
import type { Snapshot } from "../../../src/core/departure/decision.ts";
import { planFleet } from "../../../src/core/plan/plan.ts";
import { policyStatuses } from "../../../src/core/plan/policy-status.ts";
import type { ReleaseMode } from "../../../src/core/policy/policy.ts";
import {
  answersByName,
  impossible,
  problemOfFault,
  type ReleaseAnswer,
  type ReleaseAnswers,
  releaseVerdict,
} from "../../../src/core/policy/release-answer.ts";
import { hours, type Instant, minus, minutes, plus, seconds } from "../../../src/core/time/time.ts";
import { type ErrorCode, LastcallError } from "../../../src/errors.ts";
import { aDeparture, aNode, aPolicy, at } from "../fleet-builder.ts";

const n1 = aNode("n1", { createdAt: at("2026-11-20T00:00:00Z") });
/** Of the policy's 24 hours less its reserve of 30 minutes; a lone node leaves at its deadline. */
const deadlineAt = at("2026-11-20T23:30:00Z");
const refused = impossible("the permission is missing, grant it");
const away: ReleaseAnswer = { kind: "Problem", reason: "CloudUnreachable", detail: "no token" };
const possible: ReleaseAnswer = { kind: "Possible", mode: "Recreate" };

const planned = aDeparture(n1, { departAt: deadlineAt, deadlineAt });
const manual = aDeparture(n1, { cause: "Manual" });

function answered(answer: ReleaseAnswer | undefined): ReleaseAnswers {
  return new Map(answer === undefined ? [] : [[n1.uid, answer]]);
}

function world(answer: ReleaseAnswer | undefined, more: Partial<Snapshot> = {}): Snapshot {
  return {
    ...{ nodes: [n1], policies: [aPolicy()], departures: [planned] },
    ...{ badPolicies: [], gateAnswers: {}, releaseAnswers: answered(answer) },
    ...more,
  };
}

function inShort(snapshot: Snapshot, now: Instant): readonly string[] {
  return decide(snapshot, now).decisions.map(({ kind, reason }) => `${kind} ${reason}`);
}

const afterDeadline = plus(deadlineAt, minutes(5));

describe("a departure whose instant has come", () => {
  it.each<[string, ReleaseAnswer | undefined, readonly string[]]>([
    ["begins where its machine can be released", possible, ["Begin Spaced"]],
    ["is held where it cannot", refused, ["Note ReleaseImpossible"]],
    ["is held while its cloud cannot be asked", away, ["Note CloudUnreachable"]],
    ["waits until its cloud has been asked", undefined, []],
    ["waits where another mode was asked about", { ...possible, mode: "Delete" }, []],
    ["waits where the answer is old", { ...possible, untilAt: deadlineAt }, []],
  ])("%s", (_, answer, decisions) => {
    expect(inShort(world(answer), deadlineAt)).toEqual(decisions);
  });

  it.each<[string, ReleaseAnswer | undefined, readonly string[]]>([
    ["not by a machine that cannot be released", refused, ["Note ReleaseImpossible"]],
    ["not by a cloud that cannot be asked", away, ["Note CloudUnreachable"]],
    ["not while the cloud was not asked", undefined, []],
  ])("is forced by its deadline, but %s", (_, answer, decisions) => {
    const gates = { blockingPods: [], freezeUntil: plus(deadlineAt, hours(1)) };
    const frozen = { policies: [aPolicy({ gates })] };
    expect(inShort(world(possible, frozen), afterDeadline)).toEqual(["Begin DeadlineForces"]);
    expect(inShort(world(answer, frozen), afterDeadline)).toEqual(decisions);
  });

  it("needs no answer where the policy releases nothing", () => {
    const policies = [aPolicy({ instance: { ...aPolicy().instance, release: "None" } })];
    expect(inShort(world(refused, { policies }), deadlineAt)).toEqual(["Begin Spaced"]);
    expect(decide(world(undefined, { policies }), deadlineAt).asks).toEqual([]);
  });

  it("says anew what is missing when that is something else", () => {
    const status = { phase: "Held", reason: "ReleaseImpossible", message: "another sentence" };
    const held = aDeparture(n1, { departAt: deadlineAt, deadlineAt, status } as never);
    const { decisions } = decide(world(refused, { departures: [held] }), deadlineAt);
    expect(decisions).toMatchObject([{ kind: "Note", event: "Unblocked" }]);
  });
});

describe("a departure that a person asked for", () => {
  it.each<[string, ReleaseAnswer | undefined, readonly string[]]>([
    ["begins where its machine can be released", possible, ["Begin Requested"]],
    ["is held where it cannot", refused, ["Note ReleaseImpossible"]],
    ["waits until its cloud has been asked", undefined, []],
  ])("%s", (_, answer, decisions) => {
    const found = inShort(world(answer, { departures: [manual] }), at("2026-11-20T01:00:00Z"));
    expect(found).toEqual(decisions);
  });
});

describe("the machines to ask about", () => {
  const asked = (snapshot: Snapshot, now: Instant) =>
    decide(snapshot, now).asks.map(({ node, mode }) => `${node.name} ${mode}`);

  it("are those that leave within 15 seconds", () => {
    expect(asked(world(undefined), minus(deadlineAt, seconds(16)))).toEqual([]);
    expect(asked(world(undefined), minus(deadlineAt, seconds(15)))).toEqual(["n1 Recreate"]);
  });

  it("are asked about in time for the instant", () => {
    const now = minus(deadlineAt, hours(2));
    expect(decide(world(undefined), now).askAgainAt).toBe(minus(deadlineAt, seconds(15)));
    expect(decide(world(possible), now).askAgainAt).toBe(deadlineAt);
  });

  it("are not those that something else holds back", () => {
    const gates = { blockingPods: [], freezeUntil: plus(deadlineAt, hours(1)) };
    const overdue = aDeparture(n1, {
      departAt: deadlineAt,
      deadlineAt: plus(deadlineAt, hours(2)),
    });
    const policies = [aPolicy({ gates, lifetime: { ...aPolicy().lifetime, maxMs: hours(26) } })];
    expect(asked(world(undefined, { policies, departures: [overdue] }), deadlineAt)).toEqual([]);
  });
});

describe("a machine of Karpenter's", () => {
  const labels = { "cloud.google.com/gke-spot": "true", "karpenter.sh/nodepool": "spot" };
  const k1 = aNode("k1", { labels, providerID: "kwok://k1" });

  function verdict(release: ReleaseMode, answer?: ReleaseAnswer) {
    const policy = { instance: { ...aPolicy().instance, release } };
    return releaseVerdict({ policy, node: k1, answer, at: deadlineAt });
  }

  it("is asked about by its NodeClaim, and a good answer of that counts", () => {
    expect(verdict("Recreate")).toEqual({ kind: "NotAsked", mode: "NodeClaim" });
    expect(verdict("Recreate", { kind: "Possible", mode: "Recreate" })).toMatchObject({
      kind: "NotAsked",
    });
    expect(verdict("Recreate", { kind: "Possible", mode: "NodeClaim" })).toEqual({
      kind: "Allowed",
    });
  });

  it.each(["Delete", "DeleteInstance"] as const)(
    "is held in the mode %s, whatever a cloud says, and told what to write",
    (release) => {
      expect(verdict(release, { kind: "Possible" })).toMatchObject({
        kind: "Held",
        reason: "ReleaseImpossible",
        detail: expect.stringContaining("set instance.release to NodeClaim"),
      });
    },
  );

  it("is planned although no cloud of ours is behind its providerID", () => {
    const found = { nodes: [k1], policies: [aPolicy()], badPolicies: [], departures: [] };
    const plan = planFleet({ ...found, releaseAnswers: new Map(), at: at("2026-11-20T01:00:00Z") });
    expect(plan.policies.flatMap(({ departures }) => departures)).toHaveLength(1);
  });
});

describe("what a policy says of it", () => {
  const nodes = [n1, aNode("n2"), aNode("n3")];

  function condition(releaseAnswers: ReleaseAnswers, fleet = nodes) {
    const plan = planFleet({
      ...{ nodes: fleet, policies: [aPolicy()], badPolicies: [], departures: [], releaseAnswers },
      at: at("2026-11-20T01:00:00Z"),
    });
    const [status] = policyStatuses(plan, []);
    return status?.conditions.find(({ type }) => type === "Feasible");
  }

  it("is the reason and how many nodes are concerned", () => {
    expect(condition(new Map([["uid-n2", away]]))).toMatchObject({
      ...{ status: "False", reason: "CloudUnreachable" },
      message: expect.stringMatching(/^1 of 3 departures cannot begin \(n2\): no token/),
    });
  });

  it("names the nodes, the first three of many", () => {
    const answers = new Map(["n1", "n2", "n3", "n4"].map((name) => [`uid-${name}`, away]));
    expect(condition(answers, [...nodes, aNode("n4"), aNode("n5")])?.message).toMatch(
      /^4 of 5 departures cannot begin \(n1, n2, n3 and 1 more\): no token/,
    );
  });

  it("is what a person has to change, before what may pass", () => {
    const answers = new Map([
      ["uid-n1", away],
      ["uid-n2", refused],
    ]);
    expect(condition(answers)).toMatchObject({ status: "False", reason: "ReleaseImpossible" });
  });

  it("is nothing where all is well", () => {
    expect(condition(new Map([["uid-n1", possible]]))).toMatchObject({ status: "True" });
  });
});

describe("what is known without asking", () => {
  it("is that a machine has no name, or nobody to release it", () => {
    const nameless = aNode("n2", { providerID: undefined });
    const foreign = aNode("n3", { providerID: "aws:///eu-west-1a/i-0abc" });
    const found = answersByName(
      [n1, nameless, foreign],
      ({ providerID }) => providerID?.startsWith("gce:") === true,
    );
    expect([...found.keys()]).toEqual(["uid-n2", "uid-n3"]);
    expect(found.get("uid-n2")).toMatchObject({ detail: expect.stringContaining("no providerID") });
    expect(found.get("uid-n3")).toMatchObject({ detail: expect.stringContaining("i-0abc") });
  });
});

describe("a fault of the cloud", () => {
  it.each<[ErrorCode, string]>([
    ["CLOUD_UNREACHABLE", "CloudUnreachable"],
    ["CLOUD_RATE_LIMITED", "CloudUnreachable"],
    ["CLOUD_RIGHT_MISSING", "ReleaseImpossible"],
    ["CLOUD_CREDENTIALS", "ReleaseImpossible"],
    ["CLOUD_REFUSED", "ReleaseImpossible"],
  ])("of the code %s is %s", (code, reason) => {
    expect(problemOfFault(new LastcallError(code, "Cannot ask: no")).reason).toBe(reason);
  });
});
