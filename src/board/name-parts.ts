/** The hash and the random part of a name by GKE, as in `3f9ac21b-x7km`. */
const mostEnd = 14;

/**
 * A name in two parts: a column that is too narrow cuts the end of the first, and keeps the second.
 * Names in a domain differ at their start, others at their end.
 */
export function nameParts(name: string): readonly [start: string, end: string] {
  if (name.includes(".")) return [name, ""];
  const words = name.split("-");
  for (const count of [2, 1]) {
    const end = words.slice(-count).join("-");
    if (words.length > count && end.length <= mostEnd) return [name.slice(0, -end.length), end];
  }
  return name.length > mostEnd ? [name.slice(0, -8), name.slice(-8)] : [name, ""];
}

/** The name in at most `columns` characters; what is left out is marked. */
export function cutName(name: string, columns: number): string {
  if (name.length <= columns) return name;
  const [, end] = nameParts(name);
  const start = columns - 1 - end.length;
  if (end === "" || columns < 2) return `${name.slice(0, Math.max(0, columns - 1))}…`;
  return start < 1 ? `…${end.slice(1 - columns)}` : `${name.slice(0, start)}…${end}`;
}

/** Names of nodes and policies; a pod has a slash, and a field or a word is shorter. */
const longNames =
  /(?<![\w/.-])[a-z0-9][-a-z0-9]*-[-a-z0-9]*[a-z0-9](?:\.[-a-z0-9.]*[a-z0-9])?(?![\w/-])/g;

/** A sentence whose long names are cut as in `cutName`, so that it is read at one glance. */
export function withCutNames(text: string, columns: number): string {
  return text.replaceAll(longNames, (name) => cutName(name, columns));
}
