/** `1 pod`, `3 pods`, `0 pods`. */
export function counted(count: number, singular: string, plural = `${singular}s`): string {
  return `${count} ${count === 1 ? singular : plural}`;
}

/** All of a number of things that are known to the reader: `the pod`, `both pods`, `all 3 pods`. */
export function allOf(count: number, singular: string, plural = `${singular}s`): string {
  if (count === 0) return `no ${singular}`;
  if (count === 1) return `the ${singular}`;
  return count === 2 ? `both ${plural}` : `all ${count} ${plural}`;
}

/** Some of a number of things: `2 of 3 pods`; if it is every one of them, as `allOf`. */
export function someOf(some: number, all: number, singular: string): string {
  return some === all ? allOf(all, singular) : `${some} of ${counted(all, singular)}`;
}

export function isOrAre(count: number): string {
  return count === 1 ? "is" : "are";
}

export function wasOrWere(count: number): string {
  return count === 1 ? "was" : "were";
}

export function hasOrHave(count: number): string {
  return count === 1 ? "has" : "have";
}

/** The first word of a sentence. */
export function capitalized(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
