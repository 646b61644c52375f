/** What all pictures of a drain have: the clock above, and a pod beside each bar. */
import type { PodLine } from "../../core/drain-plan/drain-plan-report.ts";
import type { ComponentChildren, VNode } from "../preact.ts";
import type { PageView } from "../view-state.ts";
import { spanText } from "../words/format.ts";

interface TableProps {
  readonly view: PageView;
  /** The seconds of the clock. */
  readonly most: number;
  /** What the last column counts. */
  readonly counted: string;
  readonly children: ComponentChildren;
}

export function DrainTable({ view, most, counted, children }: TableProps): VNode {
  const { words } = view;
  return (
    <table class="bars">
      <thead>
        <tr>
          <th scope="col">
            {words.tier} · {words.pod}
          </th>
          <th scope="col" class="track">
            <Ruler view={view} most={most} />
          </th>
          <th scope="col" class="number">
            {counted}
          </th>
        </tr>
      </thead>
      <tbody>{children}</tbody>
    </table>
  );
}

interface RowProps {
  readonly pod: PodLine;
  readonly bars: ComponentChildren;
  /** In the last column. */
  readonly count: ComponentChildren;
  /** What the bars mean, below them. */
  readonly children: ComponentChildren;
}

export function DrainRow({ pod, bars, count, children }: RowProps): VNode {
  return (
    <tr>
      <td class="pod">
        <span class="tier">{pod.tier}</span>
        <span dir="auto">{pod.name}</span>
        <span class="dim">{pod.namespace}</span>
      </td>
      <td class="track">
        <span class="lane">{bars}</span>
        {children}
      </td>
      <td class="number">{count}</td>
    </tr>
  );
}

function Ruler({ view, most }: { readonly view: PageView; readonly most: number }): VNode {
  const { language } = view;
  return (
    <span class="ruler">
      {[0, 0.25, 0.5, 0.75, 1].map((share) => (
        <span key={share} style={{ left: `${share * 100}%` }}>
          {spanText(share * most * 1000, language)}
        </span>
      ))}
    </span>
  );
}

/** Of the clock's length. */
export function shareOf(seconds: number, most: number): string {
  return `${Math.min(100, Math.max(0, (100 * seconds) / most))}%`;
}
