import { ComputeRefusal } from "./compute-model.ts";

type Fields = Readonly<Record<string, unknown>>;
type Query = Readonly<Record<string, string>>;

/**
 * One page of a list as Compute Engine returns it: filtered, sorted, cut to the page size, and with
 * the requested fields. Only the part of the filter language (AIP-160) that Lastcall uses is
 * supported; anything else is refused, so that a filter cannot pass by being ignored.
 */
export function listPage(kind: "instance" | "operation", items: readonly object[], query: Query) {
  refuseBoth(query);
  const matches = filterOf(query.filter);
  const sorted = sortedBy(query.orderBy, items as readonly Fields[]).filter(matches);
  const start = Number(query.pageToken ?? 0);
  const end = start + pageSizeOf(query.maxResults);
  const page = { kind: `compute#${kind}List`, items: sorted.slice(start, end) };
  const more = end < sorted.length ? { nextPageToken: String(end) } : {};
  return chosenFields({ ...page, ...more }, query.fields);
}

/** In Compute Engine's own words. Source: doitintl/kubeip issue 132, a call of the real service. */
function refuseBoth({ filter, orderBy }: Query): void {
  if (filter === undefined || orderBy === undefined) return;
  const reason = "Specifying both a list filter and sort order is not currently supported.";
  const message = `Invalid value for field 'orderBy': '${orderBy}'. ${reason}`;
  throw new ComputeRefusal(400, "invalid", message);
}

/**
 * One page of the instances of all zones. A zone without matching instances has a warning instead,
 * as in Compute Engine.
 */
export function aggregatedPage(byZone: ReadonlyMap<string, readonly object[]>, query: Query) {
  const { fields, ...others } = query;
  const chosen = /^items\/\*\/instances\(([a-z,]+)\),nextPageToken$/.exec(fields ?? "")?.[1];
  if (fields !== undefined && chosen === undefined) throw invalid("fields", fields);
  const inner = chosen?.split(",");
  const { items, ...page } = listPage("instance", [...byZone.values()].flat(), others);
  const zoneOf = (item: Fields) => String(item.zone).split("/").at(-1);
  const ofZone = (zone: string) =>
    (items as readonly Fields[]).filter((item) => zoneOf(item) === zone);
  const scoped = [...byZone.keys()].map((zone) => {
    const instances = ofZone(zone).map((item) => pick(item, inner));
    const warning = { code: "NO_RESULTS_ON_PAGE", message: `There are no results for ${zone}.` };
    return [`zones/${zone}`, instances.length > 0 ? { instances } : { warning }] as const;
  });
  return { ...page, kind: "compute#instanceAggregatedList", items: Object.fromEntries(scoped) };
}

/** With a warning, if the chosen fields include it. */
export function warnedPage(body: object, code: string, { fields }: Query): object {
  const isChosen = fields === undefined || fields.split(",").includes("warning");
  return isChosen ? { ...body, warning: { code, message: "Some results are missing." } } : body;
}

function pageSizeOf(maxResults = "500"): number {
  const size = Number(maxResults);
  if (Number.isInteger(size) && size >= 1 && size <= 500) return size;
  throw invalid("maxResults", maxResults);
}

const term = /^\(?([a-zA-Z]+|labels\.[-_a-z0-9]+) ?= ?"([^"]*)"\)?$/;

function filterOf(filter: string | undefined): (item: Fields) => boolean {
  if (filter === undefined) return () => true;
  const terms = filter.split(" OR ").map((text) => {
    const [, name = "", value = ""] = term.exec(text) ?? [];
    if (name === "") throw invalid("filter", filter);
    return { name, value };
  });
  const fieldOf = (item: Fields, name: string) =>
    name.startsWith("labels.") ? (item.labels as Fields)[name.slice("labels.".length)] : item[name];
  return (item) => terms.some(({ name, value }) => fieldOf(item, name) === value);
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
  for (const name of fields.split(/[(),]/)) {
    if (name !== "" && !selectable.has(name)) throw invalidSelection(name);
  }
  const inner = /items\(([^()]*)\)/.exec(fields)?.[1]?.split(",");
  const outer = fields.replace(/\([^()]*\)/, "").split(",");
  const items = (page.items as readonly Fields[]).map((item) => pick(item, inner));
  return pick({ ...page, items }, outer);
}

function pick(object: Fields, names: readonly string[] | undefined): Fields {
  if (names === undefined) return object;
  return Object.fromEntries(Object.entries(object).filter(([name]) => names.includes(name)));
}

/** The fields of lists, operations and instances that Lastcall selects. */
const selectable = new Set([
  ...["items", "nextPageToken", "warning", "id", "name"],
  ...["operationType", "insertTime", "targetLink", "creationTimestamp", "lastStartTimestamp"],
]);

/** In the words of Google's APIs, which refuse a field that a resource does not have. */
function invalidSelection(name: string): ComputeRefusal {
  return new ComputeRefusal(400, "invalidParameter", `Invalid field selection ${name}`);
}

function invalid(field: string, value: string): ComputeRefusal {
  return new ComputeRefusal(400, "invalid", `Invalid value for field '${field}': '${value}'.`);
}
