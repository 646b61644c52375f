import type { NodeDeparture, NodePage } from "../../board/node-page.ts";
import {
  type BoardRow,
  type ClusterConnection,
  isDryRun,
  type PastDeparture,
  unreadLists,
} from "../../board/stream.ts";
import { type NodeAct, NodeActs } from "../act/act-buttons.tsx";
import { after, getJson, openDetails } from "../browser.ts";
import { PodMeter } from "../departures-page.tsx";
import { whereText } from "../next-table.tsx";
import { useEffect, useState, type VNode } from "../preact.ts";
import { PastList } from "../row-list.tsx";
import { HoldNote } from "../row-status.tsx";
import { type RowTime, rowTime } from "../row-time.ts";
import type { PageView } from "../view-state.ts";
import { Sentence } from "../words/sentence.tsx";
import {
  clockSecondsText,
  countdown,
  dayText,
  momentText,
  relativeText,
  secondsText,
} from "../words/time-text.ts";
import { DrainBars } from "./drain-bars.tsx";

interface NodeProps {
  readonly view: PageView;
  readonly name: string;
  /** The uid of a departure whose steps are asked for. */
  readonly departure: string | undefined;
  readonly onAct: (act: NodeAct, row: BoardRow) => void;
}

type Fetched =
  | { readonly kind: "None" }
  | { readonly kind: "Page"; readonly page: NodePage }
  | { readonly kind: "Problem"; readonly problem: string };

export function NodeView({ view, name, departure, onAct }: NodeProps): VNode {
  const { words, picture } = view;
  const row = picture.rows.find(({ node }) => node === name);
  const fetched = useNodePage({ name, row, connection: picture.fleet.connection.kind });
  const past = picture.past.filter(({ node }) => node === name);
  const page = fetched.kind === "Page" ? fetched.page : undefined;
  const isLoaded = page !== undefined;
  useEffect(() => {
    if (isLoaded && departure !== undefined) openDetails(stepsId(departure));
  }, [isLoaded, departure]);
  const isKnown = row !== undefined || past.length > 0 || (page?.departures.length ?? 0) > 0;
  const uid = row?.uid ?? past[0]?.nodeUid;
  const isOwn = ({ nodeUid }: PastDeparture): boolean => nodeUid === null || nodeUid === uid;
  const problem = fetched.kind === "Problem" ? fetched.problem : (page?.problem ?? undefined);
  return (
    <div class="node-page">
      <a class="back" href="#/">
        ← {words.departures}
      </a>
      {row === undefined ? (
        <UnseenHead view={view} name={name} isKnown={isKnown} />
      ) : (
        <>
          <NodeHead view={view} row={row} />
          <NodeActs view={view} row={row} onAct={onAct} />
        </>
      )}
      <Drain view={view} page={page} problem={row === undefined ? undefined : problem} />
      {isKnown ? <Steps view={view} page={page} /> : null}
      <Actions view={view} page={page} />
      <Past view={view} page={page} title={words.departed} id="before" past={past.filter(isOwn)} />
      <Past
        {...{ view, page, id: "earlier" }}
        title={words.earlierMachines}
        past={past.filter((one) => !isOwn(one))}
      />
    </div>
  );
}

interface PastProps {
  readonly view: PageView;
  readonly page: NodePage | undefined;
  readonly title: string;
  readonly id: string;
  readonly past: readonly PastDeparture[];
}

function Past({ view, page, title, id, past }: PastProps): VNode | null {
  if (past.length === 0) return null;
  const known = [...(page?.departures ?? []), ...(page?.earlier ?? [])];
  const stepsOf = (uid: string): VNode | null => {
    const steps = known.find((one) => one.uid === uid)?.steps ?? [];
    if (steps.length === 0) return null;
    return (
      <details id={stepsId(uid)}>
        <summary>{view.words.steps}</summary>
        <StepList view={view} steps={steps} />
      </details>
    );
  };
  return (
    <section aria-labelledby={id}>
      <h2 id={id}>{title}</h2>
      <PastList view={view} past={past} stepsOf={stepsOf} />
    </section>
  );
}

function stepsId(departure: string): string {
  return `steps-${departure}`;
}

interface UnseenProps {
  readonly view: PageView;
  readonly name: string;
  /** Whether the node ever existed. */
  readonly isKnown: boolean;
}

/** A node that no list contains: it is gone, never was, or may not be seen. */
function UnseenHead({ view: { words, picture }, name, isKnown }: UnseenProps): VNode {
  const isUnread = unreadLists(picture.fleet.missing).includes("nodes");
  return (
    <header class="node-head">
      <h2 class="node-name">{name}</h2>
      <p class="reason">
        {isUnread ? words.notRead : isKnown ? words.nodeGone : words.noNode(name)}
      </p>
    </header>
  );
}

interface DrainProps {
  readonly view: PageView;
  readonly page: NodePage | undefined;
  readonly problem: string | undefined;
}

function Drain({ view, page, problem }: DrainProps): VNode | null {
  const { words } = view;
  const isShown =
    page !== undefined &&
    (page.drains.length > 0 || page.departures.some(({ record }) => record !== null));
  if (!isShown && problem === undefined) return null;
  return (
    <section aria-labelledby="drain">
      <h2 id="drain">{words.drainPlan}</h2>
      {problem === undefined ? null : (
        <p class="held" dir="auto">
          {words.noDrain} {problem}
        </p>
      )}
      {isShown ? <DrainBars view={view} page={page} /> : null}
      {isShown && page.drains.length > 0 ? (
        <p class="dim">{words.asOf(momentText(page.at, view.now, view.language))}</p>
      ) : null}
    </section>
  );
}

interface Wanted {
  readonly name: string;
  readonly row: BoardRow | undefined;
  readonly connection: ClusterConnection["kind"];
}

/** How soon to retry what could not be read, such as after a missing permission. */
const againMs = 20_000;

/**
 * Requested again whenever its row has changed (in a drain, with every pod that leaves), when the
 * cluster is reachable again, and when the page becomes visible again.
 */
function useNodePage({ name, row, connection }: Wanted): Fetched {
  const [fetched, setFetched] = useState<Fetched>({ kind: "None" });
  const [asked, setAsked] = useState(0);
  const version = JSON.stringify(row);
  useEffect(() => {
    let isOver = false;
    let stopWaiting = (): void => {};
    const again = (): void => setAsked((count) => count + 1);
    const seen = (): void => {
      if (!document.hidden) again();
    };
    // Without an answer, what is shown stays.
    const hear = (found?: Fetched): void => {
      if (isOver) return;
      if (found !== undefined) setFetched(found);
      const isWhole = found?.kind === "Page" && found.page.problem === null;
      if (!isWhole) stopWaiting = after(againMs, seen);
    };
    getJson(`api/node?${new URLSearchParams({ name })}`)
      .then(({ status, json }) =>
        hear(
          status === 200
            ? { kind: "Page", page: json as NodePage }
            : { kind: "Problem", problem: problemIn(json) },
        ),
      )
      .catch(() => hear());
    document.addEventListener("visibilitychange", seen);
    return () => {
      isOver = true;
      stopWaiting();
      document.removeEventListener("visibilitychange", seen);
    };
  }, [name, version, connection, asked]);
  return fetched;
}

export function problemIn(json: unknown): string {
  const { problem, says } = (json ?? {}) as { problem?: string; says?: string };
  return problem ?? says ?? "";
}

function clockOf(time: RowTime, now: number): string {
  if (!("at" in time)) return "–:–";
  if (time.kind === "UntilDeadline") return countdown(time.at - now);
  return clockSecondsText(time.at).slice(0, 5);
}

/** What the clock shows. */
function whatOf(time: RowTime, view: PageView): string {
  const { words, language, now } = view;
  switch (time.kind) {
    case "UntilDeadline":
      return words.untilDeadline;
    case "Began":
      return `${words.beganAt} · ${relativeText(time.at, now, view)}`;
    case "OnHold":
      return words.onHold;
    case "Stays":
      return words.staying;
    case "Departs":
      return `${dayText(time.at, language)} · ${relativeText(time.at, now, view)}`;
  }
}

function NodeHead({ view, row }: { readonly view: PageView; readonly row: BoardRow }): VNode {
  const { words, language, now } = view;
  const { deadlineAt } = row;
  const time = rowTime(row);
  const facts = [
    [words.policy, row.policy ?? "–"],
    [words.launched, row.bornAt === null ? "–" : momentText(row.bornAt, now, language)],
    [words.earliest, row.earliestAt === null ? "–" : momentText(row.earliestAt, now, language)],
    [words.deadline, deadlineAt === null ? "–" : momentText(deadlineAt, now, language)],
    [words.window, row.window ?? "–"],
    [words.cause, row.cause === null ? "–" : words.causes[row.cause]],
  ] as const;
  return (
    <header class={time.kind === "UntilDeadline" ? "node-head urgent" : "node-head"}>
      <div>
        <h2 class="node-name">{row.node}</h2>
        <p class="where">{whereText(row)}</p>
      </div>
      <div class="node-time">
        <span class={isDryRun(row, view.picture) ? "clock dim" : "clock"}>
          {clockOf(time, now)}
        </span>
        <span class="dim">{whatOf(time, view)}</span>
      </div>
      <p class="reason">
        {words.reasons[row.reason] ?? row.reason}
        {row.phase === null ? "" : ` · ${words.phases[row.phase]}`}
        {isDryRun(row, view.picture) ? <span class="held"> · {words.dryRun}</span> : null}
      </p>
      <p class="why">
        <Sentence view={view} text={row.explain} />
      </p>
      <HoldNote view={view} row={row} />
      {row.pods === null ? null : <PodMeter view={view} pods={row.pods} />}
      <dl class="facts">
        {facts.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </header>
  );
}

function Actions({ view, page }: { readonly view: PageView; readonly page: NodePage | undefined }) {
  const { words, language } = view;
  const actions = page?.departures[0]?.actions ?? [];
  if (actions.length === 0) return null;
  return (
    <section aria-labelledby="actions">
      <h2 id="actions">{words.actions}</h2>
      <ol class="steps">
        {actions.map(({ name, kind, at, state, seconds, attempts, detail }) => (
          <li key={name}>
            <span class="when">{seconds === undefined ? "–" : secondsText(seconds, language)}</span>
            <span class={state === "Failed" ? "step held" : "step"}>
              {words.actionStates[state]}
            </span>
            <span>
              {name} · {kind} · {at}
              {attempts > 1 ? ` · ${words.attempts(attempts)}` : ""}{" "}
              {detail === undefined ? null : <Sentence view={view} text={detail} />}
            </span>
          </li>
        ))}
      </ol>
    </section>
  );
}

/** A step is named after the phase that it started, or after the reason given in it. */
function stepWords(step: string, { words }: PageView): string {
  const known: Readonly<Record<string, string>> = { ...words.reasons, ...words.phases };
  return known[step] ?? step;
}

function Steps({
  view,
  page,
}: {
  readonly view: PageView;
  readonly page: NodePage | undefined;
}): VNode {
  const { words, picture } = view;
  const isUnread = unreadLists(picture.fleet.missing).includes("departures");
  const newest = page?.departures[0];
  return (
    <section aria-labelledby="steps">
      <h2 id="steps">{words.steps}</h2>
      {newest === undefined || newest.steps.length === 0 ? (
        <p class="empty">{isUnread ? words.notRead : words.noSteps}</p>
      ) : (
        <StepList view={view} steps={newest.steps} />
      )}
    </section>
  );
}

interface StepsProps {
  readonly view: PageView;
  readonly steps: NodeDeparture["steps"];
}

function StepList({ view, steps }: StepsProps): VNode {
  return (
    <ol class="steps">
      {steps.map(({ at, step, result }) => (
        <li key={`${at} ${step} ${result}`}>
          <span class="when">{clockSecondsText(at)}</span>
          <span class="step">{stepWords(step, view)}</span>
          <Sentence view={view} text={result} />
        </li>
      ))}
    </ol>
  );
}
