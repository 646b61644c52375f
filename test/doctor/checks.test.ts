import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { type DoctorFacts, known, unknown } from "../../src/doctor/facts.ts";
import { checkList, doctorReport, isRefused } from "../../src/doctor/report.ts";
import { root } from "../../tools/source-tree.ts";
import { doctorFaults } from "../e2e/doctor-faults.ts";
import { at, budgetOf, green, nodeOf, policyOf } from "./green-facts.ts";
import { pod, type RedCase, untold, withController, withPolicies, withTrial } from "./red-cases.ts";
import { redFleet } from "./red-fleet.ts";
import { redInstallation } from "./red-installation.ts";

const red: readonly RedCase[] = [...redInstallation, ...redFleet];

const answerOf = (id: string, facts: DoctorFacts) =>
  doctorReport(facts).checks.find((check) => check.id === id);

describe("the doctor's checks", () => {
  it("all pass in a healthy cluster", () => {
    const { checks, summary } = doctorReport(green);
    expect(checks.filter(({ status, fix }) => status !== "Pass" || fix !== null)).toEqual([]);
    expect(summary).toEqual({ Pass: checkList.length, Warn: 0, Fail: 0, Skip: 0 });
  });

  it.each(red)("%s reports %s: %s", (id, status, part, change) => {
    const answer = answerOf(id, { ...green, ...change });
    expect(answer).toMatchObject({ status, message: expect.stringContaining(part) });
    if (status === "Skip") expect(answer?.fix).toBeNull();
    else expect(answer?.fix).toMatch(/\S/);
  });

  it("are at least twenty, each with a unique id, and each of them can fail", () => {
    const ids = checkList.map(({ id }) => id);
    expect(ids.length).toBeGreaterThanOrEqual(20);
    expect(new Set(ids).size).toBe(ids.length);
    const shown = new Set(red.filter(([, status]) => status !== "Skip").map(([id]) => id));
    expect(ids.filter((id) => !shown.has(id))).toEqual([]);
  });

  it("are each paired with faults for a real control plane, none of them listed twice", () => {
    const listed = new Set(doctorFaults.map(({ check }) => check));
    expect([...listed].toSorted()).toEqual(checkList.map(({ id }) => id).toSorted());
    const whats = doctorFaults.map(({ check, what }) => `${check}: ${what}`);
    expect(new Set(whats).size).toBe(whats.length);
  });

  it("say why if nothing can be queried, and only the API check fails", () => {
    const none = unknown("nobody answers");
    const facts = Object.entries(green).map(([name, fact]) =>
      (fact as { kind?: string }).kind === "Known" ? [name, none] : [name, fact],
    );
    const { checks } = doctorReport({ ...Object.fromEntries(facts), alerts: [] } as DoctorFacts);
    const told = checks
      .filter(({ status }) => status !== "Skip")
      .map(({ id, status }) => [id, status]);
    expect(told).toEqual([["api", "Fail"]]);
  });
});

describe("the doctor's sentences", () => {
  const fleet = (count: number, fresh = 0) => {
    const nodes = Array.from({ length: count + fresh }, (_, place) =>
      nodeOf(`n${place}`, place < count ? {} : { createdAt: at }),
    );
    const ready = { ...pod, component: "agent", ready: true };
    return {
      nodes: known(nodes),
      ownPods: known(nodes.slice(0, count).map(({ name }) => ({ ...ready, node: name }))),
    } as Partial<DoctorFacts>;
  };
  it.each([
    ["Skip", "there is no Spot node", fleet(0)],
    ["Skip", "12 Spot nodes are not Ready, or have just joined", fleet(0, 12)],
    ["Skip", "1 Spot node is not Ready, or has just joined", fleet(0, 1)],
    ["Pass", "an agent runs on the Spot node", fleet(1)],
    ["Pass", "an agent runs on each of 2 Spot nodes", fleet(2)],
    [
      "Pass",
      "an agent runs on each of 1000 Spot nodes; 1 Spot node is not Ready, or has just joined",
      fleet(1000, 1),
    ],
  ])("about agents are true and say how many: %s, %s", (status, message, change) => {
    expect(answerOf("agents", { ...green, ...change })).toMatchObject({ status, message });
  });

  const all = (names: readonly string[]) => names.map((name) => policyOf(name, { paused: true }));
  const budgets = (count: number) => ({
    budgets: known(Array.from({ length: count }, () => budgetOf())),
  });
  it.each([
    ["paused", "a is paused or a dry run", withPolicies(...all(["a"]))],
    ["paused", "a, b are paused or a dry run", withPolicies(...all(["a", "b"]))],
    [
      "crds",
      "departurepolicies.lastcall.dev, departures.lastcall.dev are not installed",
      {
        definitions: known([]),
      },
    ],
    ["budgets", "there is no PodDisruptionBudget", budgets(0)],
    ["budgets", "1 budget, it can allow an eviction", budgets(1)],
    ["budgets", "1000 budgets, each can allow an eviction", budgets(1000)],
    ["provider-id", "1 Spot node, with a known machine", fleet(1)],
    ["provider-id", "1000 Spot nodes, each with a known machine", fleet(1000)],
  ])("of %s say how many: %s", (id, message, change) => {
    expect(answerOf(id, { ...green, ...change })?.message).toBe(message);
  });

  it.each([
    ["a label", { "node.kubernetes.io/lifecycle": "normal" }],
    ["a role of the control plane", { "node-role.kubernetes.io/control-plane": "" }],
  ])("about labels leave out an EC2 instance with %s", (_, labels) => {
    const nodes = known([nodeOf("n0"), nodeOf("i-1", { ...untold, labels })]);
    expect(answerOf("spot-nodes", { ...green, nodes })).toMatchObject({ status: "Pass" });
  });

  it("about an EC2 instance without a label say how to give it one, as the page does", () => {
    const nodes = known([nodeOf("n0"), nodeOf("i-1", untold)]);
    const fix = answerOf("spot-nodes", { ...green, nodes })?.fix;
    const flag = "--node-labels=node.kubernetes.io/lifecycle=spot";
    expect(fix).toContain(flag);
    expect(fix).toContain("docs/cloud/aws.md");
    const page = readFileSync(join(root, "docs/cloud/aws.md"), "utf8");
    const [, section = ""] = page.split("\n## Nodes of your own groups\n");
    expect(section).toContain(flag);
    expect(section).toContain("aws autoscaling describe-scaling-activities");
  });

  it("about pods that no node takes name all that keeps them from a cluster of Spot nodes", () => {
    const why = "0/3 nodes are available: 3 node(s) had untolerated taint(s)";
    const ownPods = known([{ ...pod, component: "controller", unscheduled: why }]);
    const facts = { ...green, ...withController({ ready: 0 }), ownPods } as DoctorFacts;
    const { message, fix } = answerOf("controller", facts) ?? {};
    expect(message).toContain(why);
    for (const one of ["requireStableNodes: false", "tolerations", "node affinity"])
      expect(fix).toContain(one);
  });

  it("about pods that are not even created quote what refuses them", () => {
    const refused =
      'pods "lastcall-7d9f-x2k4p" is forbidden: exceeded quota: team, requested: limits.memory=256Mi';
    const facts = { ...green, ...withController({ ready: 0, refused }), ownPods: known([]) };
    const { message, fix } = answerOf("controller", facts as DoctorFacts) ?? {};
    expect(message).toContain(`none of the controller's 2 replicas is ready: ${refused}`);
    expect(fix).toBe("make room for its pods in the quota, or allow them in the namespace");
  });

  it("about pods whose volume is elsewhere say so", () => {
    const why = "0/3 nodes are available: 3 node(s) had volume node affinity conflict";
    const ownPods = known([{ ...pod, component: "controller", unscheduled: why }]);
    const facts = { ...green, ...withController({ ready: 0 }), ownPods } as DoctorFacts;
    expect(answerOf("controller", facts)?.fix).toContain("the zone of its volume");
  });

  it("about admission leave out what RBAC does not grant, and what is not used", () => {
    const notGranted = withTrial({
      ...{ needed: { kind: "NotGranted" }, forbidden: { kind: "NotGranted" } },
    });
    const unused = withTrial({
      ...{ isUsed: false, needed: { kind: "Denied", policy: undefined, message: "no class" } },
    });
    for (const change of [notGranted, unused]) {
      expect(answerOf("admission", { ...green, ...change })?.status).toBe("Pass");
    }
  });
});

describe("the doctor's exit code", () => {
  const warned = doctorReport({ ...green, grace: known({ errors: 1, worst: undefined }) });
  const failed = doctorReport({ ...green, definitions: known([]) });
  it.each([
    ["all passes", doctorReport(green), false, false],
    ["one warns", warned, true, false],
    ["one fails", failed, true, true],
  ])("is right for both --fail-on values if %s", (_, report, onWarn, onFail) => {
    expect(isRefused(report, "warn")).toBe(onWarn);
    expect(isRefused(report, "fail")).toBe(onFail);
  });
});
