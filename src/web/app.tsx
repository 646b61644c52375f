import type { DemoPicture } from "../board/demo-picture.ts";
import { type BoardPicture, isKnown, unreadLists } from "../board/stream.ts";
import { ActDialog, type Intent } from "./act/act-dialog.tsx";
import { DemoBar, useDemo } from "./demo/demo-bar.tsx";
import { DemoStage } from "./demo/demo-stage.tsx";
import { DeparturesPage } from "./departures-page.tsx";
import { useListChoice } from "./list-choice.ts";
import { NodeView } from "./node/node-view.tsx";
import { CutText } from "./node-name.tsx";
import { OutcomesPage } from "./outcomes-page.tsx";
import { useState, type VNode } from "./preact.ts";
import { TimelinePage } from "./timeline/timeline-page.tsx";
import {
  type LiveBoard,
  type LiveState,
  languages,
  type PagePlace,
  type PageView,
  type Preferences,
  useLive,
  useNow,
  usePlace,
  usePreferences,
} from "./view-state.ts";
import { readable } from "./words/sentence.tsx";
import { clockSecondsText, dayText, momentText, zoneText } from "./words/time-text.ts";
import type { Words } from "./words/words-english.ts";

export function App({ live }: { readonly live: LiveBoard }): VNode {
  const state = useLive(live);
  const now = useNow(live);
  const place = usePlace();
  const preferences = usePreferences();
  const words = languages[preferences.language];
  const { picture } = state;
  const view =
    picture === undefined
      ? undefined
      : { picture, now, rate: live.rate(), words, language: preferences.language };
  const demo = useDemo(picture?.fleet.isDemo === true);
  return (
    <>
      <a class="skip" href="#main">
        {words.skip}
      </a>
      <Head place={place} preferences={preferences} words={words} view={view} />
      <Notices state={state} words={words} view={view} />
      {demo === undefined ? null : (
        <DemoBar language={preferences.language} place={place} picture={demo} />
      )}
      <main id="main" tabIndex={-1} class={isStale(state) ? "stale" : ""}>
        {view !== undefined && isToBeSeen(view, place) ? (
          <Page view={view} place={place} demo={demo} />
        ) : null}
      </main>
    </>
  );
}

/** Whether the rows are a last known state, which the page greys and a notice explains. */
function isStale({ connection, picture }: LiveState): boolean {
  if (connection !== "Live" || picture === undefined) return connection !== "Live";
  const { fleet, rows } = picture;
  // Rows that were read before the right to read them was taken away.
  const isKept = rows.length > 0 && unreadLists(fleet.missing).includes("nodes");
  return fleet.connection.kind === "Away" || isKept;
}

/** Until the first lists are complete there is at most a history. */
function isToBeSeen({ picture }: PageView, { page }: PagePlace): boolean {
  return isKnown(picture) || (page === "Outcomes" && picture.past.length > 0);
}

interface PageProps {
  readonly view: PageView;
  readonly place: PagePlace;
  /** Of the demo, and not before its first message. */
  readonly demo: DemoPicture | undefined;
}

function Page({ view, place, demo }: PageProps): VNode {
  const [intent, setIntent] = useState<Intent | undefined>(undefined);
  const list = useListChoice();
  return (
    <>
      {demo !== undefined && place.page === "Departures" ? (
        <DemoStage view={view} picture={demo} />
      ) : null}
      {place.page === "Departures" ? <DeparturesPage view={view} list={list} /> : null}
      {place.page === "Timeline" ? (
        <TimelinePage view={view} list={list} onAct={(kind, card) => setIntent({ kind, card })} />
      ) : null}
      {place.page === "Outcomes" ? <OutcomesPage view={view} list={list} /> : null}
      {place.page === "Node" ? (
        <NodeView
          key={place.name}
          view={view}
          name={place.name}
          departure={place.departure}
          onAct={(kind, row) => setIntent({ kind, row })}
        />
      ) : null}
      {intent === undefined ? null : (
        <ActDialog view={view} intent={intent} onClose={() => setIntent(undefined)} />
      )}
    </>
  );
}

interface HeadProps {
  readonly place: PagePlace;
  readonly preferences: Preferences;
  readonly words: Words;
  readonly view: PageView | undefined;
}

function Head({ place, preferences, words, view }: HeadProps): VNode {
  const { language, theme, setLanguage, setTheme } = preferences;
  const links = [
    ["Departures", "#/", words.departures],
    ["Timeline", "#/timeline", words.timeline],
    ["Outcomes", "#/outcomes", words.outcomes],
  ] as const;
  return (
    <header class="top">
      <h1>
        Lastcall
        <span class="cluster">
          <CutText text={view?.picture.fleet.cluster ?? ""} />
        </span>
      </h1>
      <nav aria-label={words.board}>
        {links.map(([page, href, name]) => (
          <a key={page} href={href} aria-current={place.page === page ? "page" : undefined}>
            {name}
          </a>
        ))}
      </nav>
      <div class="tastes">
        <button type="button" onClick={() => setLanguage(language === "en" ? "ja" : "en")}>
          {words.language}
        </button>
        <button
          type="button"
          aria-label={words.theme}
          onClick={() => setTheme(theme === "dark" ? "light" : "dark")}
        >
          <svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
            <circle cx="8" cy="8" r="6" fill="none" stroke="currentColor" stroke-width="1.5" />
            <path d="M8 2a6 6 0 0 1 0 12z" fill="currentColor" />
          </svg>
        </button>
      </div>
      <p class="now" aria-hidden="true">
        {view === undefined ? (
          ""
        ) : (
          <>
            <span class="clock">{clockSecondsText(view.now)}</span>
            <span class="dim">
              {dayText(view.now, language)} {zoneText(view.now, language)}
            </span>
          </>
        )}
      </p>
    </header>
  );
}

interface NoticeProps {
  readonly state: LiveState;
  readonly words: Words;
  readonly view: PageView | undefined;
}

/** Why the board does not show the present state, or not all of it. */
function Notices({ state, words, view }: NoticeProps): VNode {
  const lines = noticeLines(state, words, view);
  const missing = state.picture?.fleet.missing ?? [];
  return (
    <div role="status">
      {lines.map((line) => (
        <p key={line} class="notice">
          {line}
        </p>
      ))}
      {missing.length === 0 ? null : (
        <div class="notice">
          <strong>{words.missingTitle}</strong>
          <ul>
            {missing.map((line) => (
              <li key={line} dir="auto">
                {view === undefined ? line : readable(line, view)}
              </li>
            ))}
          </ul>
        </div>
      )}
    </div>
  );
}

function noticeLines(
  { connection, picture }: LiveState,
  words: Words,
  view: PageView | undefined,
): readonly string[] {
  if (connection === "Refused") return [words.turnedAway];
  if (connection === "Lost") return [words.reconnecting];
  return picture === undefined ? [words.connecting] : clusterLines(picture, words, view);
}

function clusterLines(
  { fleet: { connection } }: BoardPicture,
  words: Words,
  view: PageView | undefined,
): readonly string[] {
  if (connection.kind === "Live" || view === undefined) return [];
  if (connection.kind === "Connecting") return [words.connecting];
  const since = momentText(connection.sinceAt, view.now, view.language);
  return [words.awaySince(since), readable(connection.problem, view)];
}
