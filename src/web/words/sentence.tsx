/** The core's sentences in the page's language; any other text is shown unchanged. */
import { withCutNames } from "../../board/name-parts.ts";
import type { DrainReason } from "../../core/departure/drain-reason.ts";
import { phaseEvents } from "../../core/departure/ledger.ts";
import { explainDrain } from "../../core/drain-plan/drain-plan-report.ts";
import type { Barrier, PlannedReason } from "../../core/plan/fleet-plan.ts";
import { explainPlan, type PlanFacts } from "../../core/plan/plan-report.ts";
import { explain, type Reason } from "../../core/reason/reason.ts";
import { formatInstant, instant, parseDuration, parseInstant } from "../../core/time/time.ts";
import type { VNode } from "../preact.ts";
import { details } from "./details-japanese.ts";
import { phrases } from "./phrases-japanese.ts";
import { barred, drained, explained, notPlanned, planned } from "./sentences-japanese.ts";
import { type Language, momentText, spanText } from "./words.ts";

/**
 * How a sentence of the core is recognized: the core itself writes it, with these marks in place of
 * its facts.
 */
const marks = {
  node: "\uE000",
  policy: "\uE001",
  detail: "\uE002",
  window: "\uE003",
  graceSeconds: "\uE004",
  wantedGraceSeconds: "\uE005",
} as const;

/** A fact that is one word; without this, "No node is leaving" is about a node called "No node". */
const widths: Readonly<Partial<Record<string, string>>> = {
  ...{ node: "\\S+", policy: "\\S+", graceSeconds: "\\S+", wantedGraceSeconds: "\\S+" },
};

const instants = {
  at: instant(1),
  deadlineAt: instant(2),
  until: instant(3),
  departAt: instant(4),
  earliestAt: instant(5),
  bornAt: instant(6),
} as const;

interface Pattern {
  readonly english: RegExp;
  readonly japanese: string;
}

const changes =
  "(?:; moved from (?<movedFrom>\\S+Z))?(?:; it will be held back by about (?<wait>\\S+))?";

/**
 * Turns an English sentence with marks into a pattern for all sentences like it; each fact is a
 * group.
 */
function patternOf(sentence: string, japanese: string, suffix = ""): Pattern {
  let text = sentence.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&");
  for (const [name, at] of Object.entries(instants)) {
    const written = formatInstant(at).replaceAll(".", "\\.");
    text = grouped(text, { mark: written, name, what: "\\S+Z" });
  }
  for (const [name, mark] of Object.entries(marks)) {
    text = grouped(text, { mark, name, what: widths[name] ?? ".+?" });
  }
  return { english: new RegExp(`^${text}${suffix}$`, "s"), japanese };
}

function grouped(
  text: string,
  { mark, name, what }: { readonly mark: string; readonly name: string; readonly what: string },
): string {
  return text.replace(mark, `(?<${name}>${what})`).replaceAll(mark, `\\k<${name}>`);
}

/**
 * Every combination of these facts, the fewest first: the shortest sentences match most reliably.
 */
function choices<T extends object>(facts: T): readonly Partial<T>[] {
  let all: Partial<T>[] = [{}];
  for (const [name, value] of Object.entries(facts)) {
    all = [...all, ...all.map((one) => ({ ...one, [name]: value }))];
  }
  return all.toSorted((a, b) => Object.keys(a).length - Object.keys(b).length);
}

function distinct(patterns: readonly Pattern[]): readonly Pattern[] {
  return [...new Map(patterns.map((one) => [one.english.source, one])).values()];
}

function makePatterns(): readonly Pattern[] {
  const { node, policy, detail, window, graceSeconds, wantedGraceSeconds } = marks;
  const { at, deadlineAt, until } = instants;
  const all: Pattern[] = [];
  for (const [reason, japanese] of Object.entries(explained) as [Reason, string][]) {
    for (const facts of choices({ detail, until, deadlineAt, at, policy })) {
      const sentence = explain(reason, { node, ...facts }).slice(0, -1);
      all.push(patternOf(sentence, `{node} ${japanese}`));
    }
  }
  for (const [reason, japanese] of Object.entries(planned) as [PlannedReason, string][]) {
    for (const bornFrom of ["Node", "Instance"] as const) {
      for (const facts of choices({ window })) {
        all.push(planPattern(reason, { bornFrom, ...facts }, japanese));
      }
    }
  }
  for (const [by, japanese] of Object.entries(barred) as [Barrier["by"], string][]) {
    for (const bornFrom of ["Node", "Instance"] as const) {
      const barrier = { by, untilAt: until };
      all.push(planPattern("DeadlineBeatsWindow", { bornFrom, barrier }, japanese));
    }
  }
  for (const [reason, japanese] of Object.entries(notPlanned) as [Reason, string][]) {
    all.push(patternOf(explainPlan(reason, { node, policy, detail }), japanese));
  }
  // The core writes this text; here a mark replaces a number.
  const grace = { graceSeconds, wantedGraceSeconds } as object as Readonly<
    Record<"graceSeconds" | "wantedGraceSeconds", number>
  >;
  for (const [reason, japanese] of Object.entries(drained) as [DrainReason, string][]) {
    for (const facts of choices({ ...grace, detail })) {
      all.push(patternOf(explainDrain(reason, facts), japanese));
    }
  }
  return distinct(all);
}

/** A pattern for the sentence about a node with a planned departure. */
function planPattern(
  reason: PlannedReason,
  facts: Pick<PlanFacts, "bornFrom" | "window" | "barrier">,
  japanese: string,
): Pattern {
  const { node, policy } = marks;
  const { departAt, earliestAt, deadlineAt, bornAt } = instants;
  const about = { node, policy, departAt, earliestAt, deadlineAt, bornAt };
  const from = facts.bornFrom === "Node" ? "Node オブジェクト" : "クラウド";
  const text = japanese.replace("{bornFrom}", from);
  return patternOf(explainPlan(reason, { ...about, ...facts }), text, changes);
}

let patterns: readonly Pattern[] | undefined;
const known = new Map<string, string>();
/** The size of the cache; a fleet of thousands is viewed page by page. */
const mostKnown = 2000;

/** Longer than any sentence of the core: longer texts from a cluster are not searched for one. */
const longest = 1500;

export function translated(text: string, language: Language): string {
  if (language === "en" || text === "" || text.length > longest) return text;
  const before = known.get(text);
  if (before !== undefined) return before;
  const found = sentence(text);
  if (known.size >= mostKnown) known.clear();
  known.set(text, found);
  return found;
}

function sentence(text: string): string {
  const isWhole = text.endsWith(".");
  const bare = isWhole ? text.slice(0, -1) : text;
  const found = afterEvent(bare) ?? whole(bare) ?? inParts(bare);
  return found === undefined ? text : `${found}${isWhole ? "。" : ""}`;
}

/** In a timeline the event precedes its sentence, as in `Due: n1 is leaving now.` */
function afterEvent(text: string): string | undefined {
  const [, event = "", rest = ""] = /^([A-Z][A-Za-z]+): (.+)$/s.exec(text) ?? [];
  const isEvent = phaseEvents.some((one) => one === event);
  return isEvent ? whole(rest.replace(/\.$/, "")) : undefined;
}

function inParts(text: string): string | undefined {
  const parts = text.split(/; |(?<=Z)\. |\. (?=(?:All|Both|The|No|\d+ of \d+) departures? )/);
  const found = parts.map((part) => whole(part) ?? phrase(part));
  if (found.every((part) => part === undefined)) return undefined;
  return parts.map((part, place) => found[place] ?? part).join("、");
}

function whole(text: string): string | undefined {
  patterns ??= makePatterns();
  for (const { english, japanese } of patterns) {
    const match = english.exec(text);
    if (match === null) continue;
    const { movedFrom, wait, detail, ...others } = match.groups ?? {};
    const facts = detail === undefined ? others : { ...others, detail: detailOf(detail) };
    const moved = movedFrom === undefined ? "" : `、${movedFrom} から変更`;
    const held = wait === undefined ? "" : `、約 ${wait} 遅れる見込み`;
    return `${filled(japanese, facts)}${moved}${held}`;
  }
  return undefined;
}

function detailOf(detail: string): string {
  return phrase(detail) ?? phrase(detail, details) ?? heldPods(detail) ?? detail;
}

/** What holds up a drain: pods by name, each with what the core or the cluster says about it. */
function heldPods(detail: string): string | undefined {
  if (!/^\S+\/\S+: /.test(detail)) return undefined;
  const parts = detail.split("; ").map((part) => {
    const [, pod = "", said = part] = /^(\S+\/\S+: )(.+)$/s.exec(part) ?? [];
    return `${pod}${whole(said) ?? phrase(said) ?? said}`;
  });
  return parts.join("、");
}

function phrase(text: string, known = phrases): string | undefined {
  for (const [english, japanese] of known) {
    const match = english.exec(text);
    if (match === null) continue;
    const facts = Object.fromEntries(
      match.map((group, place) => [String(place), group && (nested(known, group) ?? group)]),
    );
    return filled(japanese.replaceAll(/\$(\d)/g, "{$1}"), facts);
  }
  return undefined;
}

/** A detail within a phrase, in the viewer's language. */
function nested(of: typeof phrases, group: string): string | undefined {
  return of === phrases ? phrase(group, details) : undefined;
}

type Facts = Readonly<Record<string, string | undefined>>;

/** A bracketed part whose fact is missing is omitted; a fact is given once. */
function filled(japanese: string, facts: Facts): string {
  const told = new Set<string>();
  const fill = (part: string): string =>
    part.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
      told.add(name);
      return facts[name] ?? "不明";
    });
  const chosen = japanese.replaceAll(/\[([^\]]*)\]/g, (_, part: string) => {
    const names = [...part.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => name);
    const isThere = names.every((name) => facts[name] !== undefined);
    return isThere && !names.every((name) => told.has(name)) ? fill(part) : "";
  });
  return fill(chosen);
}

const writtenInstants = /\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d+)?Z/g;

/** `15m59s350ms`: with more than one part, or milliseconds; hardly ever a name. */
const durations =
  /(?<![\w.-])(?=(?:\d+[hms]+){2}|\d+ms)(?:\d+h)?(?:\d+m(?!s))?(?:\d+s)?(?:\d+ms)?(?![\w.-])/g;

/** One with a single part, where the core's sentences have only durations. */
const spans =
  /(?<=(?:at least|instead of|by about|to end|最小で|でなく|時間帯が|約) )\d+[hms](?![\w.-])/g;

/** The core writes instants in UTC to the millisecond; people read their own clock. */
export function withLocalTimes(
  text: string,
  about: { readonly now: number; readonly language: Language },
): string {
  const local = text.replaceAll(writtenInstants, (found) => {
    const at = parseInstant(found);
    return at === undefined ? found : momentText(at, about.now, about.language);
  });
  const inWords = (found: string): string => {
    const span = parseDuration(found);
    return span === undefined ? found : spanText(span, about.language);
  };
  return local.replaceAll(durations, inWords).replaceAll(spans, inWords);
}

/** A sentence of the core for the viewer: in their language, on their clock. */
export function readable(
  text: string,
  about: { readonly now: number; readonly language: Language },
): string {
  return withLocalTimes(translated(text, about.language), about);
}

interface SentenceProps {
  readonly text: string;
  readonly view: { readonly now: number; readonly language: Language };
  readonly class?: string;
}

/** A sentence of the core or the cluster, always as text; its title is the exact original. */
export function Sentence({ text, view, class: name = "why" }: SentenceProps): VNode {
  return (
    <span class={name} dir="auto" title={text}>
      {readable(text, view)}
    </span>
  );
}

/** Longer names are cut in a list, which is read at a glance. */
const nameColumns = 26;

/** As `readable`, with its long names cut; no line ends at a cut. */
export function readableAtOnce(
  text: string,
  about: { readonly now: number; readonly language: Language },
): string {
  return withCutNames(readable(text, about), nameColumns).replaceAll(/…(?=\S)/g, "…\u2060");
}

/** As `Sentence`, with its long names cut. */
export function BriefSentence({ text, view }: Omit<SentenceProps, "class">): VNode {
  return (
    <span class="why" dir="auto" title={text}>
      {readableAtOnce(text, view)}
    </span>
  );
}
