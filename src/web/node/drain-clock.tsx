/** What all pictures of a drain have: the clock above, and a pod beside each bar. */
import type { PodLine } from "../../core/drain-plan/drain-plan-report.ts";
import type { VNode } from "../preact.ts";
import type { PageView } from "../view-state.ts";
import { spanText } from "../words/format.ts";

export function Ruler({ view, most }: { readonly view: PageView; readonly most: number }): VNode {
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

export function PodCell({ view, pod }: { readonly view: PageView; readonly pod: PodLine }): VNode {
  const { words } = view;
  return (
    <td class="pod">
      <span class="tier" title={words.tier}>
        {pod.tier}
      </span>
      <span dir="auto">{pod.name}</span>
      <span class="dim">{pod.namespace}</span>
    </td>
  );
}
