import { ComputeRefusal } from "./compute-model.ts";

type Fields = Readonly<Record<string, unknown>>;
type Query = Readonly<Record<string, string>>;

/**
 * One page of a list as Compute Engine gives it: filtered, sorted, cut to the page, and with the
 * fields asked for. Of the filter language (AIP-160) only what Lastcall writes is understood;
 * everything else is refused, so that a filter cannot pass by being ignored.
 */
export function listPage(kind: "instance" | "operation", items: readonly object[], query: Query) {
  const matches = filterOf(query.filter);
  const sorted = sortedBy(query.orderBy, items as readonly Fields[]).filter(matches);
  const start = Number(query.pageToken ?? 0);
  const end = start + pageSizeOf(query.maxResults);
  const page = { kind: `compute#${kind}List`, items: sorted.slice(start, end) };
  const more = end < sorted.length ? { nextPageToken: String(end) } : {};
  return chosenFields({ ...page, ...more }, query.fields);
}

function pageSizeOf(maxResults = "500"): number {
  const size = Number(maxResults);
  if (Number.isInteger(size) && size >= 1 && size <= 500) return size;
  throw invalid("maxResults", maxResults);
}

const term = /^\(?([a-zA-Z]+) ?= ?"([^"]*)"\)?$/;

function filterOf(filter: string | undefined): (item: Fields) => boolean {
  if (filter === undefined) return () => true;
  const terms = filter.split(" OR ").map((text) => {
    const [, name = "", value = ""] = term.exec(text) ?? [];
    if (name === "") throw invalid("filter", filter);
    return { name, value };
  });
  return (item) => terms.some(({ name, value }) => item[name] === value);
}

function sortedBy(orderBy: string | undefined, items: readonly Fields[]): readonly Fields[] {
  const timeOf = (item: Fields) => Date.parse(String(item.insertTime ?? item.creationTimestamp));
  if (orderBy === "creationTimestamp desc") return items.toSorted((a, b) => timeOf(b) - timeOf(a));
  if (orderBy !== undefined) throw invalid("orderBy", orderBy);
  return items.toSorted((a, b) => (String(a.name) < String(b.name) ? -1 : 1));
}

/** `items(name,id),nextPageToken`: a partial response. */
function chosenFields(page: Fields, fields: string | undefined): Fields {
  if (fields === undefined) return page;
  const inner = /items\(([^()]*)\)/.exec(fields)?.[1]?.split(",");
  const outer = fields.replace(/\([^()]*\)/, "").split(",");
  const items = (page.items as readonly Fields[]).map((item) => pick(item, inner));
  return pick({ ...page, items }, outer);
}

function pick(object: Fields, names: readonly string[] | undefined): Fields {
  if (names === undefined) return object;
  return Object.fromEntries(Object.entries(object).filter(([name]) => names.includes(name)));
}

function invalid(field: string, value: string): ComputeRefusal {
  return new ComputeRefusal(400, "invalid", `Invalid value for field '${field}': '${value}'.`);
}
