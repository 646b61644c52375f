/** `table, json or yaml`. */
export function orList(words: readonly string[]): string {
  return listed(words, "or");
}

/** `run, agent and doctor`. */
export function andList(words: readonly string[]): string {
  return listed(words, "and");
}

function listed(words: readonly string[], before: string): string {
  const last = words.at(-1) ?? "";
  return words.length < 2 ? last : `${words.slice(0, -1).join(", ")} ${before} ${last}`;
}
