/**
 * The largest possible whole number from `kept` to `limit`, if with one all smaller ones are
 * possible; `kept` itself is not asked for. It takes about log2 of their difference questions.
 */
export function largest(
  { kept = 0, limit }: { readonly kept?: number; readonly limit: number },
  isPossible: (one: number) => boolean,
): number {
  if (limit <= kept || isPossible(limit)) return Math.max(kept, limit);
  let possible = kept;
  let impossible = limit;
  while (impossible - possible > 1) {
    const middle = Math.floor((possible + impossible) / 2);
    if (isPossible(middle)) possible = middle;
    else impossible = middle;
  }
  return possible;
}
