/**
 * A message as long as its receiver takes it: its first lines and the last one, and between them
 * how many are left out. Of one line its beginning. `fits` holds for every shorter text, too.
 */
export function fitText(text: string, fits: (text: string) => boolean): string {
  if (fits(text)) return text;
  const lines = text.split("\n");
  const last = lines.at(-1) ?? "";
  const without = (left: number) => {
    const told = `… and ${left} more ${left === 1 ? "line" : "lines"}`;
    return [...lines.slice(0, lines.length - 1 - left), told, last].join("\n");
  };
  // At least the first line is kept: it names the subject.
  const left = leastOf(1, lines.length - 2, (count) => fits(without(count)));
  if (left !== undefined) return without(left);
  const signs = Array.from(text);
  const beginning = (missing: number) => `${signs.slice(0, -missing).join("").replace(half, "")}…`;
  const missing = leastOf(1, signs.length, (count) => fits(beginning(count)));
  return missing === undefined ? "" : beginning(missing);
}

/** An escape of which the end is cut off, as Slack (`&amp;`) and Teams (`\_`) have them. */
const half = /(?:&\w{0,5}|\\)$/;

/** The least number of these for which it holds, which then holds for all above it. */
function leastOf(from: number, to: number, holds: (count: number) => boolean): number | undefined {
  let [low, high] = [from, to + 1];
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    if (holds(middle)) high = middle;
    else low = middle + 1;
  }
  return low > to ? undefined : low;
}

export function bytesOf(text: string): number {
  return new TextEncoder().encode(text).byteLength;
}
