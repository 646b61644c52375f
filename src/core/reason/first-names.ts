/** How many of several names are told. */
const mostNames = 3;

/** The first names, and how many more there are: the facts of `({names}[ and {more} more])`. */
export function firstNames(all: readonly string[]): {
  readonly names: string;
  readonly more: number | undefined;
} {
  const more = all.length - mostNames;
  const names = all.slice(0, mostNames).join(", ");
  return { names, more: more > 0 ? more : undefined };
}
