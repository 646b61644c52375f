import { readdirSync, readFileSync } from "node:fs";
import { Cron } from "croner";
import { describe, expect, it } from "vitest";
import { readPolicies } from "../../src/config/policy/read-policy.ts";
import { hours, instant, millis, minutes } from "../../src/core/time/time.ts";
import { isLastcallError, LastcallError } from "../../src/errors.ts";
import { readCorpus } from "../support/policy-corpus.ts";

/** The cron library itself, so that the corpus is checked against what runs. */
function cronProblem(expression: string): string | undefined {
  try {
    new Cron(expression, { mode: "5-part", paused: true });
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

function read(...texts: readonly string[]) {
  const sources = texts.map((text, index) => ({ file: `${"abc"[index]}.yaml`, text }));
  return readPolicies(sources, { cronProblem });
}

function refusalOf(...texts: readonly string[]): LastcallError {
  try {
    read(...texts);
  } catch (error) {
    if (isLastcallError(error)) return error;
    throw error;
  }
  throw new Error("the policies were taken");
}

function policy(spec: string, name = "spot"): string {
  return `apiVersion: lastcall.dev/v1alpha1\nkind: DeparturePolicy\nmetadata:\n  name: ${name}\nspec: ${spec}\n`;
}

describe("a bad policy file", () => {
  it.each(readCorpus("bad"))(
    "$file is refused for its only mistake",
    ({ file, text, expect: wanted }) => {
      const sources = [{ file, text }];
      expect(() => readPolicies(sources, { cronProblem })).toThrow(
        new LastcallError("POLICY_INVALID", `Cannot read the policy: ${wanted}`, {
          details: [wanted],
        }),
      );
    },
  );

  it("makes the command exit with code 2", () => {
    expect(refusalOf("").exitCode).toBe(2);
  });

  it("reports all mistakes in the order of files and lines, the first in the message", () => {
    const error = refusalOf(
      policy("{paused: maybe}\n---\n{"),
      policy(
        "\n  drain: {timeout: fast}\n  weight: heavy\n  lifetime: {max: 1h, min: 2h, reserve: 0s}",
      ),
    );
    expect(error.details).toEqual([
      'a.yaml:5: spec.paused: found "maybe", expected true or false',
      "a.yaml:8: found invalid YAML (Flow map must end with a }), expected YAML",
      'b.yaml:6: spec.drain.timeout: found "fast", expected a duration such as 90s or 12h30m',
      'b.yaml:7: spec.weight: found "heavy", expected a whole number from -1000000 to 1000000',
      "b.yaml:8: spec.lifetime.max: found 1h under a min of 2h, expected at least lifetime.min",
    ]);
    expect(error.message).toBe(`Cannot read the policy: ${error.details[0]} (and 4 more mistakes)`);
  });

  it("reports a mistake once: an unreadable duration violates no rule as well", () => {
    expect(refusalOf(policy("{lifetime: {min: long, max: 1h}}")).details).toHaveLength(1);
  });

  it("of another kind is reported only for its kind", () => {
    expect(refusalOf("apiVersion: v1\nkind: Namespace\n").message).toBe(
      'Cannot read the policy: a.yaml:2: kind: found "Namespace", expected DeparturePolicy',
    );
  });

  it("may not use a name from another file", () => {
    expect(refusalOf(policy("{}"), policy("{}")).message).toBe(
      'Cannot read the policy: b.yaml:4: metadata.name: found "spot" a second time, expected a unique name (a.yaml:4 has this one)',
    );
  });

  it("of several megabytes is refused before it is parsed", () => {
    expect(refusalOf(`# ${"x".repeat(5 * 1024 * 1024)}`).message).toBe(
      "Cannot read the policy: a.yaml:1: found a file of 6 MiB, expected at most 4 MiB of YAML",
    );
  });
});

describe("a policy in the docs", () => {
  const pages = ["README.md", ...readdirSync("docs", { recursive: true, encoding: "utf8" })]
    .filter((path) => path.endsWith(".md"))
    .map((path) => (path === "README.md" ? path : `docs/${path}`));
  const shown = pages.flatMap((page) =>
    [...readFileSync(page, "utf8").matchAll(/```yaml\n(.*?)```/gs)]
      .map(([, text = ""]) => ({ page, text }))
      .filter(({ text }) => text.includes("kind: DeparturePolicy")),
  );

  it.each(shown)("is valid as it stands in $page", ({ page, text }) => {
    expect(() => readPolicies([{ file: page, text }], { cronProblem })).not.toThrow();
  });

  it("is the same in README and in the first steps", () => {
    const [readme, steps] = ["README.md", "docs/getting-started.md"].map(
      (page) => shown.find((one) => one.page === page)?.text,
    );
    expect(readme).toContain("name: spot");
    expect(steps).toBe(readme);
  });
});

describe("a good policy file", () => {
  it.each(readCorpus("good"))("$file is accepted", ({ file, text }) => {
    expect(() => readPolicies([{ file, text }], { cronProblem })).not.toThrow();
  });

  it("may hold several documents and lists", () => {
    const several = readCorpus("good").find(({ file }) => file === "several.yaml");
    const { policies } = read(several?.text ?? "");
    expect(policies.map(({ name }) => name)).toEqual(["web", "batch", "data"]);
  });

  it("with an empty spec has every default", () => {
    expect(read(policy("{}")).policies).toEqual([
      {
        name: "spot",
        weight: 0,
        lifetime: { minMs: 0, reserveMs: minutes(30) },
        spacing: { mode: "Late", minMs: minutes(15) },
        windows: [],
        budgets: [],
        gates: { blockingPods: [], gangWorkloads: "Hold", maxUnhealthy: 0.55 },
        replacement: {
          ...{ when: "None", timeoutMs: minutes(10), onTimeout: "Proceed" },
          expectForMs: hours(24),
        },
        drain: {
          timeoutMs: minutes(5),
          onTimeout: "RollBack",
          onSingleReplica: "Wait",
          budgetShare: 0.5,
          podRules: [],
        },
        onNotice: { spotInterruption: "Drain", rebalance: "Ignore", maintenance: "Drain" },
        instance: {
          release: "Recreate",
          awaitMachineMs: 1_800_000,
          loadBalancerDelayMs: 0,
          lifecycleHook: "Continue",
        },
        actions: [],
        paused: false,
        dryRun: false,
      },
    ]);
  });

  it("with every field becomes the policy that the core reads", () => {
    const contract = readCorpus("good").find(({ file }) => file === "contract.yaml");
    expect(read(contract?.text ?? "").policies[0]).toEqual({
      name: "spot",
      weight: 0,
      nodeSelector: { nodeSelectorTerms: [] },
      lifetime: { minMs: 0, maxMs: hours(24), reserveMs: minutes(30) },
      spacing: { mode: "Late", minMs: minutes(15) },
      windows: [
        {
          kind: "Weekly",
          name: "nights",
          type: "Allow",
          timeZone: "Asia/Tokyo",
          days: ["Mon", "Tue", "Wed", "Thu", "Fri"],
          startMinute: 22 * 60,
          endMinute: 6 * 60,
        },
        {
          kind: "Cron",
          name: "sale",
          type: "Deny",
          timeZone: "Asia/Tokyo",
          cron: "0 18 * * 5",
          durationMs: hours(6),
        },
      ],
      budgets: [
        { kind: "Nodes", scope: "Policy", nodes: { percent: 10 } },
        { kind: "PerHour", perHour: 6 },
      ],
      gates: {
        freezeUntil: instant(Date.UTC(2026, 11, 1)),
        alerts: { url: "http://alertmanager:9093", matchers: ['severity="critical"'] },
        blockingPods: [{ matchLabels: { job: "batch" } }],
        gangWorkloads: "Allow",
        maxUnhealthy: 0.55,
      },
      replacement: {
        ...{ when: "BeforeDrain", timeoutMs: minutes(10), onTimeout: "Proceed" },
        expectForMs: hours(24),
      },
      drain: {
        timeoutMs: minutes(5),
        onTimeout: "RollBack",
        onSingleReplica: "Wait",
        budgetShare: 0.5,
        podRules: [],
      },
      onNotice: { spotInterruption: "Drain", rebalance: "Ignore", maintenance: "Drain" },
      instance: {
        release: "Recreate",
        awaitMachineMs: 1_800_000,
        loadBalancerDelayMs: 0,
        lifecycleHook: "Continue",
      },
      actions: [
        {
          name: "targets",
          at: "AtNotice",
          causes: ["SpotInterruption"],
          ...{ timeoutMs: 30_000, retries: 3, required: false },
          how: { kind: "deregisterTargets", wait: true },
        },
        {
          ...{ name: "quarantine", at: "AtNotice" },
          ...{ timeoutMs: 10_000, retries: 3, required: false },
          how: { kind: "replaceSecurityGroups", groupIds: ["sg-0abc"] },
        },
        {
          ...{ name: "mute", at: "AtNotice" },
          ...{ timeoutMs: 10_000, retries: 3, required: false },
          how: {
            kind: "alertmanagerSilence",
            ...{ url: "http://am:9093", matchers: ['instance="{{node}}"'] },
            ...{ durationMs: hours(2), comment: "{{node}} leaves: {{cause}}" },
          },
        },
        {
          ...{ name: "tell", at: "AtEnd" },
          ...{ timeoutMs: 10_000, retries: 3, required: false },
          how: {
            kind: "sns",
            topicArn: "arn:aws:sns:eu-west-1:123456789012:drains",
            ...{ subject: "{{node}} {{outcome}}", message: "{{summary}}" },
          },
        },
      ],
      paused: false,
      dryRun: false,
    });
  });

  it.each([
    ["0%", 0],
    ["7%", 0.07],
    ["100%", 1],
  ])("with a budgetShare of %s keeps budgets for that part of a notice", (written, budgetShare) => {
    const { policies } = read(policy(`{drain: {budgetShare: ${written}}}`));
    expect(policies[0]?.drain.budgetShare).toBe(budgetShare);
  });

  it.each([
    ["22:00", "06:00", 1320, 360],
    ["00:00", "24:00", 0, 1440],
    ["22:00", "00:00", 1320, 1440],
    ["23:59", "24:00", 1439, 1440],
    ["06:30", "06:29", 390, 389],
  ])("has the window from %s to %s as minutes %i to %i", (start, end, startMinute, endMinute) => {
    const text = policy(`{windows: [{start: "${start}", end: "${end}"}]}`);
    const days = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
    const base = { kind: "Weekly", name: "windows[0]", type: "Allow", timeZone: "UTC", days };
    expect(read(text).policies[0]?.windows).toEqual([{ ...base, startMinute, endMinute }]);
  });

  it.each([
    ["{nodes: 2}", { kind: "Nodes", scope: "Policy", nodes: { count: 2 } }],
    ["{nodes: 100%, scope: Zone}", { kind: "Nodes", scope: "Zone", nodes: { percent: 100 } }],
    ["{perHour: 1}", { kind: "PerHour", perHour: 1 }],
  ])("reads the budget %s as one of the two kinds", (written, budget) => {
    expect(read(policy(`{budgets: [${written}]}`)).policies[0]?.budgets).toEqual([budget]);
  });

  it("has pod rules with their timeouts", () => {
    const rule = "{selector: {}, namespaces: [ml], action: WaitCompleted, timeout: 1.5h}";
    expect(read(policy(`{drain: {podRules: [${rule}]}}`)).policies[0]?.drain.podRules).toEqual([
      { selector: {}, namespaces: ["ml"], action: "WaitCompleted", timeoutMs: millis(5_400_000) },
    ]);
  });

  it("becomes frozen data", () => {
    const [read0] = read(policy("{windows: [{start: '09:00', end: '17:00'}]}")).policies;
    expect(Object.isFrozen(read0)).toBe(true);
    expect(Object.isFrozen(read0?.windows[0])).toBe(true);
  });
});

describe("a warning", () => {
  it.each([
    ["a policy in a namespace", "\n  namespace: x\nspec: {}", "metadata.namespace is ignored"],
    [
      "a selector without a term",
      "\nspec:\n  nodeSelector: {nodeSelectorTerms: []}",
      "spec.nodeSelector has no term",
    ],
    [
      "windows without a lifetime",
      "\nspec:\n  windows: [{start: '09:00', end: '17:00'}]",
      "spec.windows has no effect",
    ],
    [
      "a silence without a machine",
      "\nspec:\n  actions: [{name: mute, at: AtNotice, alertmanagerSilence: {url: 'http://am', matchers: ['job=web']}}]",
      "spec.actions[0].alertmanagerSilence.matchers names no machine",
    ],
  ])("has the line of %s", (_, rest, beginning) => {
    const text = `apiVersion: lastcall.dev/v1alpha1\nkind: DeparturePolicy\nmetadata:\n  name: spot${rest}\n`;
    const line = rest.includes("namespace") ? 5 : 6;
    expect(read(text).warnings).toEqual([
      expect.stringMatching(
        new RegExp(`^a\\.yaml:${line}: ${beginning.replaceAll(/[.[\]]/g, "\\$&")}`),
      ),
    ]);
  });

  it("is not given for an ordinary policy", () => {
    const silence = `{url: 'http://am', matchers: [job=web, 'instance=~"{{ node }}:.*"']}`;
    const { warnings } = read(
      policy(
        `{lifetime: {max: 24h}, windows: [{start: '09:00', end: '17:00'}], actions: [{name: mute, at: AtNotice, alertmanagerSilence: ${silence}}]}`,
      ),
    );
    expect(warnings).toEqual([]);
  });
});
