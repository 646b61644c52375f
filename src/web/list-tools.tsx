import type { ListView } from "./list-choice.ts";
import type { VNode } from "./preact.ts";
import type { PageView } from "./view-state.ts";

interface ListFieldProps {
  readonly view: PageView;
  readonly list: ListView;
}

/** The same filter in every view. */
export function FilterField({ view: { words }, list: { choice, choose } }: ListFieldProps): VNode {
  return (
    <input
      class="filter"
      type="search"
      aria-label={words.filter}
      placeholder={words.filterHint}
      value={choice.filter}
      onInput={({ currentTarget }) => choose({ filter: currentTarget.value })}
    />
  );
}
