import type { OutcomeDay } from "../board/stream.ts";
import type { Outcome } from "../core/departure/departure.ts";
import { PastList } from "./past-list.tsx";
import type { VNode } from "./preact.ts";
import type { PageView } from "./view-state.ts";

/** From the best to the worst. */
const outcomes: readonly Outcome[] = [
  "Planned",
  "Preempted",
  "Cancelled",
  "RolledBack",
  "Forced",
  "Expired",
  "Failed",
];

export function OutcomesPage({ view }: { readonly view: PageView }): VNode {
  const { words, picture } = view;
  const { days } = picture.fleet;
  const most = Math.max(1, ...days.map(countOf));
  return (
    <div class="outcomes">
      <section aria-labelledby="days">
        <h2 id="days">{words.days}</h2>
        <p class="dim">{words.outcomeNote}</p>
        {days.length === 0 ? (
          <p class="empty">{words.nobodyDeparted}</p>
        ) : (
          <div class="scroll" tabIndex={0} role="region" aria-label={words.outcomes}>
            <table class="days">
              <thead>
                <tr>
                  <th scope="col">{words.day}</th>
                  <th scope="col">{words.policy}</th>
                  <th scope="col">{words.outcomes}</th>
                  {[words.podsCut, words.podsForced, words.podsLost].map((name) => (
                    <th key={name} scope="col" class="number">
                      {name}
                    </th>
                  ))}
                </tr>
              </thead>
              <tbody>
                {days.map((day) => (
                  <DayRow key={`${day.day} ${day.policy}`} view={view} day={day} most={most} />
                ))}
              </tbody>
            </table>
          </div>
        )}
      </section>
      <section aria-labelledby="ended">
        <h2 id="ended">{words.departed}</h2>
        <PastList view={view} past={picture.past.slice(0, 200)} />
      </section>
    </div>
  );
}

function countOf({ outcomes: counts }: OutcomeDay): number {
  return Object.values(counts).reduce((sum, count) => sum + count, 0);
}

interface Day {
  readonly view: PageView;
  readonly day: OutcomeDay;
  /** Of any day: its bar is as wide as there is room. */
  readonly most: number;
}

function DayRow({ view, day, most }: Day): VNode {
  const { words } = view;
  const found = outcomes.flatMap((outcome) => {
    const count = day.outcomes[outcome] ?? 0;
    return count === 0 ? [] : [{ outcome, count }];
  });
  return (
    <tr>
      <td class="when">{day.day}</td>
      <td>{day.policy ?? "–"}</td>
      <td class="shares">
        <span class="bars" aria-hidden="true">
          {found.map(({ outcome, count }) => (
            <i key={outcome} class={outcome} style={{ width: `${(100 * count) / most}%` }} />
          ))}
        </span>
        {found.map(({ outcome, count }) => (
          <span key={outcome} class={`outcome ${outcome}`}>
            {words.outcomesWords[outcome]} {count}
          </span>
        ))}
      </td>
      <td class="number">{day.podsCut}</td>
      <td class="number">{day.podsForced}</td>
      <td class="number">{day.podsLost}</td>
    </tr>
  );
}
