/** What a viewer has chosen about lists of nodes, which the page's address keeps. */
import { replaceSearch } from "./browser.ts";
import { useEffect, useState } from "./preact.ts";

const sortColumns = ["time", "node", "zone", "pool", "why", "status"] as const;
export type SortColumn = (typeof sortColumns)[number];

export const groupings = ["pool", "zone"] as const;
export type Grouping = (typeof groupings)[number];

export interface ListChoice {
  readonly filter: string;
  readonly sort: SortColumn;
  readonly isDescending: boolean;
  readonly group: Grouping | undefined;
}

/** Total: what the page does not know is as if it were absent. */
export function choiceIn(search: string): ListChoice {
  const query = new URLSearchParams(search);
  const sort = query.get("sort") ?? "";
  const isDescending = sort.startsWith("-");
  const column = sortColumns.find((one) => one === (isDescending ? sort.slice(1) : sort));
  return {
    filter: query.get("filter") ?? "",
    sort: column ?? "time",
    isDescending: isDescending && column !== undefined,
    group: groupings.find((one) => one === query.get("group")),
  };
}

/** Only what differs from the default, so that a plain address stays plain. */
export function searchOf({ filter, sort, isDescending, group }: ListChoice): string {
  const query = new URLSearchParams();
  if (filter !== "") query.set("filter", filter);
  if (sort !== "time" || isDescending) query.set("sort", `${isDescending ? "-" : ""}${sort}`);
  if (group !== undefined) query.set("group", group);
  return query.size === 0 ? "" : `?${query}`;
}

/** A second click on a column reverses its order. */
export function sortedBy(choice: ListChoice, column: SortColumn): ListChoice {
  const isDescending = choice.sort === column && !choice.isDescending;
  return { ...choice, sort: column, isDescending };
}

export interface ListView {
  readonly choice: ListChoice;
  readonly choose: (change: Partial<ListChoice>) => void;
}

/** In the part of the address before the fragment, which links between views do not change. */
export function useListChoice(): ListView {
  const [choice, setChoice] = useState(() => choiceIn(location.search));
  useEffect(() => {
    // Back and forward may lead to an address with another choice.
    const follow = (): void => setChoice(choiceIn(location.search));
    addEventListener("popstate", follow);
    return () => removeEventListener("popstate", follow);
  }, []);
  const choose = (change: Partial<ListChoice>): void => {
    const next = { ...choice, ...change };
    replaceSearch(searchOf(next));
    setChoice(next);
  };
  return { choice, choose };
}
