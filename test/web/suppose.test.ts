/**
 * The board's what-if as a browser runs it: bundled for browsers and loaded into a context that has
 * only the language and nothing of Node. Its results are compared with those of `lastcall plan`.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createContext, runInContext } from "node:vm";
import { rolldown } from "rolldown";
import { beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { type WhatIfFacts, whatIfFacts } from "../../src/board/picture.ts";
import type { CommandIo } from "../../src/cli/command-line/command.ts";
import { runCommandLine } from "../../src/cli/command-line/command-line.ts";
import { hasReleaser } from "../../src/cli/commands/plan.ts";
import { readFleet } from "../../src/cli/input/fleet-snapshot.ts";
import { seededRng } from "../../src/core/chance/chance.ts";
import type { Departure } from "../../src/core/departure/departure.ts";
import type { PlanReport } from "../../src/core/plan/plan-report.ts";
import { answersByName } from "../../src/core/policy/release-answer.ts";
import { type Instant, parseInstant } from "../../src/core/time/time.ts";
import { processIo } from "../../src/runtime/process-io.ts";
import { realClock } from "../../src/runtime/real-clock.ts";

const root = join(import.meta.dirname, "../..");

/** What the page uses for a policy text, and the report of the plan. */
const entry = `
  export { policyText, presentPicture, suppose } from ${JSON.stringify(join(root, "src/web/what-if/suppose.ts"))};
  export { planReport } from ${JSON.stringify(join(root, "src/core/plan/plan-report.ts"))};
`;

interface SupposeRun {
  readonly kind: "Planned" | "Mistakes";
  readonly mistakes?: readonly string[];
  readonly report?: PlanReport;
  readonly departs?: Readonly<Record<string, number | null>>;
}

/** Evaluates an expression in the bundle's context; only text goes in and out. */
let ask: (expression: string, given: object) => string;

beforeAll(async () => {
  const id = "what-if-entry";
  const build = await rolldown({
    input: id,
    platform: "browser",
    plugins: [
      {
        name: id,
        resolveId: (source) => (source === id ? id : null),
        load: (source) => (source === id ? entry : null),
      },
    ],
  });
  const { output } = await build.generate({ format: "iife", name: "whatIf" });
  await build.close();
  expect(output).toHaveLength(1);
  const context = createContext({});
  // A browser without Temporal says so on the page; Node 22 and 24 have none.
  if (!runInContext('"Temporal" in globalThis', context)) context.Temporal = Temporal;
  runInContext(output[0].code, context);
  ask = (expression, given) =>
    runInContext(`var given = ${JSON.stringify(given)}; ${expression}`, context) as string;
});

async function lastcall(words: readonly string[]): Promise<string> {
  const out: string[] = [];
  const io = commandIo((text) => void out.push(text));
  await runCommandLine(words, io);
  return out.join("");
}

function commandIo(out: (text: string) => void): CommandIo {
  const { files } = processIo();
  return {
    ...{ out, err: () => {}, files, isTerminal: false, colour: false, columns: 100, env: {} },
    ...{ fetch, clock: realClock, rng: seededRng(1), signal: new AbortController().signal },
  };
}

/**
 * The facts of a fleet from docs/plans under one of its policies, as the server would send them.
 */
async function factsOf(fleet: string, policy: string, at: string): Promise<WhatIfFacts> {
  const from = [`docs/plans/${fleet}.nodes.json`];
  const view = await readFleet(
    { from, filename: [] },
    {},
    commandIo(() => {}),
  );
  return whatIfFacts({
    view,
    policies: [parse(readFileSync(`docs/plans/${policy}.yaml`, "utf8"))],
    releaseAnswers: answersByName(view.nodes, hasReleaser),
    at: parseInstant(at) as Instant,
  });
}

function supposed(facts: WhatIfFacts, text: string, policy = "spot"): SupposeRun {
  const made = ask(
    `(() => {
      const it = whatIf.suppose(given.facts, given);
      if (it.kind === "Mistakes") return JSON.stringify(it);
      const { plan, rows } = it.picture;
      const departs = Object.fromEntries(rows.map((row) => [row.node, row.departAt]));
      return JSON.stringify({ kind: it.kind, report: whatIf.planReport(plan), departs });
    })()`,
    { facts, policy, text },
  );
  return JSON.parse(made) as SupposeRun;
}

const night = "2026-11-20T00:00:00Z";

it("the context of the what-if has nothing of Node", () => {
  const names = ["process", "Buffer", "require", "global", "setTimeout", "URL", "fetch"];
  const typeOf = names.map((name) => `typeof ${name}`).join(",");
  expect(JSON.parse(ask(`JSON.stringify([${typeOf}])`, {}))).toEqual(names.map(() => "undefined"));
});

describe.each([
  ["nights", "nights", night],
  ["short-window", "short-window", night],
  ["late-install", "anytime", night],
  ["budget", "budget", night],
  ["clock-change", "clock-change", "2026-10-24T20:00:00Z"],
])("the what-if in a browser, of the fleet %s under %s", (fleet, policy, at) => {
  const files = { policy: `docs/plans/${policy}.yaml`, nodes: `docs/plans/${fleet}.nodes.json` };

  it("plans what lastcall plan prints, byte for byte", async () => {
    const facts = await factsOf(fleet, policy, at);
    const text = readFileSync(files.policy, "utf8");
    const words = ["plan", "-f", files.policy, "--from", files.nodes, "--at", at, "-o", "json"];
    const printed = await lastcall(words);
    expect((JSON.parse(printed) as PlanReport).policies[0]?.departures.length).toBeGreaterThan(1);
    expect(`${JSON.stringify(supposed(facts, text).report, undefined, 2)}\n`).toBe(printed);
  });

  it("plans the same for the text that it writes of the cluster's policy", async () => {
    const facts = await factsOf(fleet, policy, at);
    const text = ask("whatIf.policyText(given.facts, 'spot')", { facts });
    expect(parse(text)).toEqual(parse(readFileSync(files.policy, "utf8")));
    const present = "JSON.stringify(whatIf.planReport(whatIf.presentPicture(given.facts).plan))";
    expect(JSON.stringify(supposed(facts, text).report)).toBe(ask(present, { facts }));
  });
});

describe("a policy text in the what-if", () => {
  const nights = readFileSync("docs/plans/nights.yaml", "utf8");

  it("with a mistake is rejected with the field, what was found and what is expected", async () => {
    const facts = await factsOf("nights", "nights", night);
    const { kind, mistakes } = supposed(facts, nights.replace("min: 30m", "min: soon"));
    expect(kind).toBe("Mistakes");
    expect(mistakes).toHaveLength(1);
    expect(mistakes?.[0]).toMatch(/^policy:\d+: spec\.\w+\.min: found "soon", expected /);
    expect(supposed(facts, "").mistakes).toEqual([
      "policy:1: found no policy, expected at least one DeparturePolicy",
    ]);
  });

  it("under another name replaces the policy, too", async () => {
    const facts = await factsOf("nights", "nights", night);
    const { report } = supposed(facts, nights.replace("name: spot", "name: other"));
    expect(report?.policies.map(({ name }) => name)).toEqual(["other"]);
  });

  it("moves a planned departure, but not one that a person requested", async () => {
    const facts = await factsOf("nights", "nights", night);
    const before = supposed(facts, nights).departs ?? {};
    const [one, other] = facts.nodes;
    if (one === undefined || other === undefined) throw new Error("the fleet has two nodes");
    const departures = [
      departureOf(one, { cause: "Planned", departAt: before[one.name] as number }),
      departureOf(other, { cause: "Manual", departAt: before[other.name] as number }),
    ];
    // The window ends before both departures, so the plan can keep neither of them.
    const earlier = nights.replace(/end: ["']?06:00["']?/, 'end: "02:00"');
    expect(earlier).not.toBe(nights);
    const { departs = {} } = supposed({ ...facts, departures }, earlier);
    expect(departs[one.name]).toBeLessThan(parseInstant("2026-11-20T02:00:00Z") as number);
    expect(departs[other.name]).toBe(before[other.name]);
  });
});

function departureOf(
  { name, uid, providerID }: WhatIfFacts["nodes"][number],
  { cause, departAt }: { readonly cause: Departure["cause"]; readonly departAt: number },
): Departure {
  return {
    ...{ name: `${name}-1`, uid: `d-${uid}`, resourceVersion: "1", policy: "spot", hold: false },
    node: { name, uid, providerID },
    ...{ cause, departAt: departAt as Instant, status: { phase: "Scheduled", timeline: [] } },
  };
}
