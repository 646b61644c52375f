import type { HeadlineTone, WaitingCount } from "../core/plan/headline.ts";
import { inEnglish } from "../core/reason/english.ts";
import type { VNode } from "./preact.ts";
import type { PageView } from "./view-state.ts";
import { readableAtOnce } from "./words/sentence.tsx";

const toneMarks: Readonly<Record<HeadlineTone, string>> = { Good: "✓", Note: "◆", Bad: "▲" };

/** One line each for what a person who looks once has to know. */
export function Headline({ view }: { readonly view: PageView }): VNode {
  const { picture, words } = view;
  return (
    <section class="headline" aria-label={words.headline}>
      <dl>
        {picture.fleet.headline.map((one) => (
          <div key={`${one.subject} ${one.policy}`} class={one.tone}>
            <dt>
              <span class="mark" aria-hidden="true">
                {toneMarks[one.tone]}
              </span>
              <span dir="auto">{one.policy ?? words.headlineSubjects[one.subject]}</span>
            </dt>
            <dd dir="auto" title={inEnglish(one.says)}>
              {readableAtOnce(one.says, view)}
              <Waiting view={view} waiting={one.waiting} />
            </dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

function Waiting({
  view: { words },
  waiting,
}: {
  readonly view: PageView;
  readonly waiting: readonly WaitingCount[];
}): VNode | null {
  if (waiting.length === 0) return null;
  const texts = waiting.map(
    ({ reason, departures }) => `${words.reasons[reason] ?? reason} (${departures})`,
  );
  return <span class="held"> · {texts.join(" · ")}</span>;
}
