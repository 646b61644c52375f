import { describe, expect, it } from "vitest";
import { decide } from "../../../src/core/decide.ts";
import type { Snapshot } from "../../../src/core/departure/decision.ts";
import { planFleet } from "../../../src/core/plan/plan.ts";
import { policyStatuses } from "../../../src/core/plan/plan-status.ts";
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
/** The policy's 24 hours less its reserve of 30 minutes; a lone node leaves at its deadline. */
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

describe("a departure that is due", () => {
  it.each<[string, ReleaseAnswer | undefined, readonly string[]]>([
    ["begins where its machine can be released", possible, ["Begin Spaced"]],
    ["is held where it cannot", refused, ["Note ReleaseImpossible"]],
    ["is held while its cloud is unreachable", away, ["Note CloudUnreachable"]],
    ["waits until its cloud has been asked", undefined, []],
    ["waits if another release mode was checked", { ...possible, mode: "Delete" }, []],
    ["waits if the check is old", { ...possible, untilAt: deadlineAt }, []],
  ])("%s", (_, answer, decisions) => {
    expect(inShort(world(answer), deadlineAt)).toEqual(decisions);
  });

  it.each<[string, ReleaseAnswer | undefined, readonly string[]]>([
    ["not if its machine cannot be released", refused, ["Note ReleaseImpossible"]],
    ["not if its cloud is unreachable", away, ["Note CloudUnreachable"]],
    ["not before its cloud was checked", undefined, []],
  ])("is forced at its deadline, but %s", (_, answer, decisions) => {
    const gates = { blockingPods: [], freezeUntil: plus(deadlineAt, hours(1)) };
    const frozen = { policies: [aPolicy({ gates })] };
    expect(inShort(world(possible, frozen), afterDeadline)).toEqual(["Begin DeadlineForces"]);
    expect(inShort(world(answer, frozen), afterDeadline)).toEqual(decisions);
  });

  it("needs no release check if the policy releases nothing", () => {
    const policies = [aPolicy({ instance: { ...aPolicy().instance, release: "None" } })];
    expect(inShort(world(refused, { policies }), deadlineAt)).toEqual(["Begin Spaced"]);
    expect(decide(world(undefined, { policies }), deadlineAt).asks).toEqual([]);
  });

  it("is noted again if the message changes", () => {
    const status = { phase: "Held", reason: "ReleaseImpossible", message: "another sentence" };
    const held = aDeparture(n1, { departAt: deadlineAt, deadlineAt, status } as never);
    const { decisions } = decide(world(refused, { departures: [held] }), deadlineAt);
    expect(decisions).toMatchObject([{ kind: "Note", event: "Blocked" }]);
  });
});

describe("a departure that a person requested", () => {
  it.each<[string, ReleaseAnswer | undefined, readonly string[]]>([
    ["begins where its machine can be released", possible, ["Begin Requested"]],
    ["is held where it cannot", refused, ["Note ReleaseImpossible"]],
    ["waits until its cloud has been asked", undefined, []],
  ])("%s", (_, answer, decisions) => {
    const found = inShort(world(answer, { departures: [manual] }), at("2026-11-20T01:00:00Z"));
    expect(found).toEqual(decisions);
  });
});

describe("the machines to check", () => {
  const asked = (snapshot: Snapshot, now: Instant) =>
    decide(snapshot, now).asks.map(({ node, mode }) => `${node.name} ${mode}`);

  it("are those that leave within 15 seconds", () => {
    expect(asked(world(undefined), minus(deadlineAt, seconds(16)))).toEqual([]);
    expect(asked(world(undefined), minus(deadlineAt, seconds(15)))).toEqual(["n1 Recreate"]);
  });

  it("are checked in time before the departure", () => {
    const now = minus(deadlineAt, hours(2));
    expect(decide(world(undefined), now).askAgainAt).toBe(minus(deadlineAt, seconds(15)));
    expect(decide(world(possible), now).askAgainAt).toBe(deadlineAt);
  });

  it("do not include those that something else holds back", () => {
    const gates = { blockingPods: [], freezeUntil: plus(deadlineAt, hours(1)) };
    const overdue = aDeparture(n1, {
      departAt: deadlineAt,
      deadlineAt: plus(deadlineAt, hours(2)),
    });
    const policies = [aPolicy({ gates, lifetime: { ...aPolicy().lifetime, maxMs: hours(26) } })];
    expect(asked(world(undefined, { policies, departures: [overdue] }), deadlineAt)).toEqual([]);
  });
});

describe("a Karpenter machine", () => {
  const labels = { "cloud.google.com/gke-spot": "true", "karpenter.sh/nodepool": "spot" };
  const k1 = aNode("k1", { labels, providerID: "kwok://k1" });

  function verdict(release: ReleaseMode, answer?: ReleaseAnswer) {
    const policy = { instance: { ...aPolicy().instance, release } };
    return releaseVerdict({ policy, node: k1, answer, at: deadlineAt });
  }

  it("is checked through its NodeClaim, and only that answer counts", () => {
    expect(verdict("Recreate")).toEqual({ kind: "NotAsked", mode: "NodeClaim" });
    expect(verdict("Recreate", { kind: "Possible", mode: "Recreate" })).toMatchObject({
      kind: "NotAsked",
    });
    expect(verdict("Recreate", { kind: "Possible", mode: "NodeClaim" })).toEqual({
      kind: "Allowed",
    });
  });

  it.each(["Delete", "DeleteInstance"] as const)(
    "is held in mode %s whatever the cloud says, with the value to set instead",
    (release) => {
      expect(verdict(release, { kind: "Possible" })).toMatchObject({
        kind: "Held",
        reason: "ReleaseImpossible",
        detail: expect.stringContaining("set instance.release to NodeClaim"),
      });
    },
  );

  it("is planned even if its providerID belongs to no known cloud", () => {
    const found = { nodes: [k1], policies: [aPolicy()], badPolicies: [], departures: [] };
    const plan = planFleet({ ...found, releaseAnswers: new Map(), at: at("2026-11-20T01:00:00Z") });
    expect(plan.policies.flatMap(({ departures }) => departures)).toHaveLength(1);
  });
});

describe("the Feasible condition of a policy", () => {
  const nodes = [n1, aNode("n2"), aNode("n3")];

  function condition(releaseAnswers: ReleaseAnswers, fleet = nodes) {
    const plan = planFleet({
      ...{ nodes: fleet, policies: [aPolicy()], badPolicies: [], departures: [], releaseAnswers },
      at: at("2026-11-20T01:00:00Z"),
    });
    const [status] = policyStatuses(plan, []);
    return status?.conditions.find(({ type }) => type === "Feasible");
  }

  it("states the reason and how many nodes are affected", () => {
    expect(condition(new Map([["uid-n2", away]]))).toMatchObject({
      ...{ status: "False", reason: "CloudUnreachable" },
      message: expect.stringMatching(/^1 of 3 departures cannot start \(n2\): no token/),
    });
  });

  it("names the nodes, at most three of them", () => {
    const answers = new Map(["n1", "n2", "n3", "n4"].map((name) => [`uid-${name}`, away]));
    expect(condition(answers, [...nodes, aNode("n4"), aNode("n5")])?.message).toMatch(
      /^4 of 5 departures cannot start \(n1, n2, n3 and 1 more\): no token/,
    );
  });

  it("prefers a problem that a person has to fix to one that may pass", () => {
    const answers = new Map([
      ["uid-n1", away],
      ["uid-n2", refused],
    ]);
    expect(condition(answers)).toMatchObject({ status: "False", reason: "ReleaseImpossible" });
  });

  it("is True if every machine can be released", () => {
    expect(condition(new Map([["uid-n1", possible]]))).toMatchObject({ status: "True" });
  });
});

describe("without asking the cloud", () => {
  it("machines without a providerID or without a releaser are known to be unreleasable", () => {
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

describe("a cloud error", () => {
  it.each<[ErrorCode, string]>([
    ["CLOUD_UNREACHABLE", "CloudUnreachable"],
    ["CLOUD_RATE_LIMITED", "CloudUnreachable"],
    ["CLOUD_RIGHT_MISSING", "ReleaseImpossible"],
    ["CLOUD_CREDENTIALS", "ReleaseImpossible"],
    ["CLOUD_REFUSED", "ReleaseImpossible"],
  ])("with code %s is reported as %s", (code, reason) => {
    expect(problemOfFault(new LastcallError(code, "Cannot ask: no")).reason).toBe(reason);
  });
});

describe("a machine that two Nodes name", () => {
  it.each([
    ["gce://demo/a/vm", "gce://demo/a/vm", true],
    ["gce://demo/a/vm", "gce://demo/b/vm", false],
    ["aws:///eu-west-1a/i-0abcdef1", "aws:////i-0abcdef1", true],
    ["aws:///eu-west-1a/i-0abcdef1", "aws:///eu-west-1a/i-0abcdef2", false],
    [
      "azure:///subscriptions/S/resourceGroups/G/providers/Microsoft.Compute/virtualMachines/a",
      "azure:///subscriptions/s/resourcegroups/g/providers/Microsoft.Compute/virtualMachines/a",
      true,
    ],
    ["kind://docker/kind/worker", "kind://docker/kind/worker", true],
    [undefined, undefined, false],
  ])("is not released, however they spell it: %s and %s", (one, other, isShared) => {
    const nodes = [aNode("a", { providerID: one }), aNode("b", { providerID: other })];
    const answers = answersByName(nodes, ({ providerID }) => providerID !== undefined);
    const details = nodes.map(({ uid }) => {
      const answer = answers.get(uid);
      return answer?.kind === "Problem" && answer.detail.includes("has the same machine");
    });
    expect(details).toEqual([isShared, isShared]);
  });
});
