import { expect, it } from "vitest";
import { type Rng, seededRng } from "../../../src/core/chance/chance.ts";
import type { PodFacts } from "../../../src/core/cluster/pod.ts";
import {
  type DrainPlanReport,
  drainPlanReport,
  type PodLine,
} from "../../../src/core/drain-plan/drain-plan-report.ts";
import { type Millis, minutes, plus, seconds } from "../../../src/core/time/time.ts";
import { type DrainRecord, type DrainRun, type ModelPod, runDrain } from "./drain-model.ts";
import { budget, node, pod, rule, startAt } from "./drain-scene.ts";

/**
 * What `lastcall drain-plan` says of a node is what its drain then does, if its assumptions hold:
 * each pod needs all of its grace, and a budget stays as it is. The checker knows the report, the
 * requests and the world, and neither how a plan is made nor how a drain decides.
 */
const apps = ["free", "open", "shut", "job", "gone", "kept"] as const;

function pick<T>(rng: Rng, from: readonly T[]): T {
  return from[Math.floor(rng() * from.length)] as T;
}

function randomPod(rng: Rng, i: number): ModelPod {
  const app = pick(rng, apps);
  const facts: Partial<PodFacts> = {
    labels: { app },
    controller: { kind: "ReplicaSet", name: app, uid: `rs-${app}` },
    priority: pick(rng, [0, 0, 1000, 2_000_000_000]),
    graceSeconds: pick(rng, [0, 1, 5, 30, 60, 300]),
    annotations: rng() < 0.1 ? { "lastcall.dev/do-not-disturb": "true" } : {},
    ...(rng() < 0.1 && { deletionAt: plus(startAt, seconds(pick(rng, [3, 20]))) }),
    ...(rng() < 0.05 && { mirror: true }),
  };
  return { facts: pod(`p${i}`, facts) };
}

function randomRun(seed: number, notice: Millis | undefined): DrainRun {
  const rng = seededRng(seed);
  const shared = { expectedPods: 20, currentHealthy: 20 };
  const selecting = (app: string) => ({ selector: { matchLabels: { app } } });
  const open = budget("open", { ...shared, ...selecting("open"), disruptionsAllowed: 20 });
  const shut = budget("shut", { ...shared, ...selecting("shut"), disruptionsAllowed: 0 });
  const unready = rng() < 0.2 ? { isUnreachable: true } : {};
  return {
    seed,
    node: node(unready),
    pods: Array.from({ length: 1 + Math.floor(rng() * 8) }, (_, i) => randomPod(rng, i)),
    budgets: [{ facts: open }, { facts: shut }],
    rule: rule({
      timeoutMs: pick(rng, [minutes(2), minutes(10), minutes(30)]),
      onTimeout: pick(rng, ["RollBack", "Proceed", "Wait"] as const),
      budgetShare: pick(rng, [0, 0.2, 0.5, 1]),
      podRules: [
        {
          ...{ selector: { matchLabels: { app: "job" } }, action: "WaitCompleted" },
          timeoutMs: pick(rng, [seconds(10), minutes(1), undefined]),
        },
        { selector: { matchLabels: { app: "gone" } }, action: "Delete" },
        { selector: { matchLabels: { app: "kept" } }, action: "Skip" },
      ],
    }),
    ...{ notice, untilMs: minutes(20) },
  };
}

interface Course {
  readonly run: DrainRun;
  readonly report: DrainPlanReport;
  readonly record: DrainRecord;
}

function courseOf(run: DrainRun): Course {
  const record = runDrain(run);
  return { run, record, report: drainPlanReport(record.plan) };
}

function factsOf({ run }: Course, line: { readonly uid: string }): PodFacts {
  const found = run.pods.find(({ facts }) => facts.uid === line.uid);
  if (found === undefined) throw new Error(`no pod ${line.uid}`);
  return found.facts;
}

function isShut(course: Course, line: PodLine): boolean {
  return factsOf(course, line).labels.app === "shut" && line.action !== "Delete";
}

/** When the pod's termination began, and with how much grace; undefined if it never did. */
function askedOf(course: Course, line: PodLine) {
  const sent = course.record.sent.filter(({ act }) => act.pod.uid === line.uid);
  const first = sent[0];
  const accepted = sent.find(({ answer }) => answer === "Accepted");
  const own = factsOf(course, line).graceSeconds;
  const act = accepted?.act;
  const named = act !== undefined && "graceSeconds" in act ? act.graceSeconds : undefined;
  return {
    first: first && first.afterMs / 1000,
    kind: act?.kind,
    at: accepted && accepted.afterMs / 1000,
    grace: accepted && Math.max(1, named ?? own),
  };
}

/** Without a deadline and without Proceed, nothing overrules what blocks a pod of a lower tier. */
function waitsForBlocked({ run, report }: Course, { tier }: PodLine): boolean {
  if (report.noticeSeconds !== null || run.rule.onTimeout === "Proceed") return false;
  return report.pods.some((other) => other.action === "Block" && other.tier < tier);
}

function differenceOf(course: Course, line: PodLine): string | undefined {
  const { report, record } = course;
  const { first, kind, at, grace } = askedOf(course, line);
  if (line.reason === "Terminating") return first === undefined ? undefined : `asked at ${first}`;
  if (line.action === "Block") return at === undefined ? undefined : `left at ${at}`;
  if (waitsForBlocked(course, line)) return first === undefined ? undefined : `asked at ${first}`;
  if (line.startSeconds >= record.endedMs / 1000) return undefined;
  if (first !== line.startSeconds) return `asked at ${first}`;
  if (!isShut(course, line)) return grace === line.graceSeconds ? undefined : `given ${grace} s`;
  if (report.noticeSeconds === null) return undefined;
  const isForced = kind === "Delete" && at === line.forceAtSeconds;
  return isForced ? undefined : `${kind} at ${at}, not at ${line.forceAtSeconds}`;
}

function differences(course: Course): readonly string[] {
  const { report, record } = course;
  const touched = report.skipped.filter(({ name }) =>
    record.sent.some(({ act }) => act.pod.name === name),
  );
  const differing = report.pods.flatMap((line) => {
    const what = differenceOf(course, line);
    return what === undefined
      ? []
      : [`${line.name} ${line.reason} at ${line.startSeconds}: ${what}`];
  });
  return [...touched.map(({ name }) => `${name} is not skipped`), ...differing];
}

it.each<[string, number?]>([
  ["without a notice"],
  ["with 5 s of notice", 5],
  ["with 30 s of notice", 30],
  ["with 120 s of notice", 120],
  ["with 600 s of notice", 600],
])("300 random plans are kept %s", (_, notice) => {
  const found: string[] = [];
  for (let seed = 1; seed <= 300; seed++) {
    const course = courseOf(randomRun(seed, notice === undefined ? undefined : seconds(notice)));
    const { onTimeout } = course.run.rule;
    found.push(...differences(course).map((one) => `seed ${seed}, ${onTimeout}: ${one}`));
  }
  expect(found).toEqual([]);
});
