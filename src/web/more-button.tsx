import type { VNode } from "./preact.ts";
import type { PageView } from "./view-state.ts";

/** If there are more than shown: a button that shows all. */
export function MoreButton({
  view,
  count,
  onMore,
}: {
  readonly view: PageView;
  readonly count: number;
  readonly onMore: (() => void) | undefined;
}): VNode | null {
  if (onMore === undefined) return null;
  return (
    <button type="button" class="more" onClick={onMore}>
      {view.words.showAll(count)}
    </button>
  );
}
