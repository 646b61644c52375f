import type { PastDeparture, PodLoss } from "../board/stream.ts";
import type { VNode } from "./preact.ts";
import { nodeLink, type PageView } from "./view-state.ts";
import { Sentence } from "./words/sentence.tsx";
import { fineSpanText, isolated, momentText } from "./words/words.ts";

/** Ended departures, each with its outcome and what went wrong. */
export function PastList({
  view,
  past,
  empty = view.words.nobodyDeparted,
}: {
  readonly view: PageView;
  readonly past: readonly PastDeparture[];
  /** The text shown if there are none. */
  readonly empty?: string;
}): VNode {
  if (past.length === 0) return <p class="empty">{empty}</p>;
  return (
    <ul class="past">
      {past.map((one) => (
        <PastRow key={one.id} view={view} past={one} />
      ))}
    </ul>
  );
}

function PastRow({ view, past }: { readonly view: PageView; readonly past: PastDeparture }): VNode {
  const { words, language, now } = view;
  return (
    <li>
      <span class="when">{momentText(past.endedAt, now, language)}</span>
      <a class="name" href={nodeLink(past.node)}>
        {past.node}
      </a>
      <span class={`outcome ${past.outcome}`}>{words.outcomesWords[past.outcome]}</span>
      <span class="why" dir="auto">
        <Sentence view={view} text={past.explain} class="" />
        <NoticeFigures view={view} past={past} />
        {past.pods === null || past.pods.cut === 0 ? null : (
          <span class="figures held">{words.cutCount(past.pods.cut)}</span>
        )}
        {past.losses.map((loss) => (
          <Loss key={`${loss.pod} ${loss.what}`} view={view} loss={loss} of={loss.pod} />
        ))}
      </span>
    </li>
  );
}

interface LossProps {
  readonly view: PageView;
  readonly loss: PodLoss;
  /** The pod, if nothing next to it names it. */
  readonly of?: string;
}

export function Loss({ view: { words }, loss: { what, why }, of }: LossProps): VNode {
  return (
    <span class="loss" dir="auto">
      {of === undefined ? "" : `${of}: `}
      {words.lossWords[what]}
      {why === null ? "" : ` (${isolated(why)})`}
    </span>
  );
}

function NoticeFigures({ view, past }: { readonly view: PageView; readonly past: PastDeparture }) {
  const { words, language } = view;
  const { noticeToCordonMs, timeLeftMs } = past;
  if (noticeToCordonMs === null && timeLeftMs === null) return null;
  const figure = (name: string, ms: number | null): string =>
    ms === null ? "" : `${name} ${fineSpanText(ms, language)}`;
  return (
    <span class="figures">
      {[figure(words.noticeToCordon, noticeToCordonMs), figure(words.timeLeft, timeLeftMs)]
        .filter((text) => text !== "")
        .join(" · ")}
    </span>
  );
}
