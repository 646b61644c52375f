import type { PolicyCard } from "../../board/stream.ts";
import type { VNode } from "../preact.ts";
import type { PageView } from "../view-state.ts";
import { Sentence } from "../words/sentence.tsx";
import { momentText, spanText } from "../words/words.ts";

interface StandingProps {
  readonly view: PageView;
  readonly card: PolicyCard;
}

/** Whether a policy's plan can be kept, why not, and how far apart its departures are. */
export function PolicyStanding({ view, card }: StandingProps): VNode {
  const { words, language, now } = view;
  const { freezeUntil } = card;
  const isFrozen = freezeUntil !== null && freezeUntil > now;
  return (
    <>
      <p class={card.isFeasible ? "good" : "held"}>
        {card.problem !== null
          ? words.unreadable
          : card.isFeasible
            ? words.feasible
            : words.infeasible}
        {card.isPaused ? ` · ${words.paused}` : ""}
        {card.isDryRun ? ` · ${words.dryRun}` : ""}
        {isFrozen ? ` · ${words.frozenUntil(momentText(freezeUntil, now, language))}` : ""}
      </p>
      <p>
        <Sentence view={view} text={card.problem ?? card.forecast} />
      </p>
      <Spacing view={view} card={card} />
    </>
  );
}

/** Three bars on one scale: the spacing requested, the actual one, and the best possible. */
function Spacing({ view, card }: StandingProps): VNode | null {
  const { words, language } = view;
  const all = [
    [words.wanted, card.wantedMs],
    [words.reached, card.reachedMs],
    [words.best, card.bestMs],
  ] as const;
  const known = all.filter(([, ms]) => ms !== null);
  const most = Math.max(1, ...known.map(([, ms]) => ms ?? 0));
  if (known.length === 0) return null;
  return (
    <dl class="spacing" aria-label={words.spacing}>
      {known.map(([name, ms]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>
            <i aria-hidden="true" style={{ width: `${(60 * (ms ?? 0)) / most}%` }} />
            {spanText(ms ?? 0, language)}
          </dd>
        </div>
      ))}
    </dl>
  );
}
