/**
 * What a terminal shows by its locale, as tmux and others ask it; Windows has none, and shows all.
 */
export function showsUnicode(
  env: Readonly<Record<string, string | undefined>>,
  platform: string,
): boolean {
  if (platform === "win32") return true;
  const locale = [env.LC_ALL, env.LC_CTYPE, env.LANG].find(
    (one) => one !== undefined && one !== "",
  );
  return /utf-?8/i.test(locale ?? "");
}

/** The characters of frames, and one of ASCII for each: the columns stay as they are. */
const [drawn, inPlace] = ["▁▂▃▄▅▆▇█▏▎▍▌▋▊▉·×│…↓↑", "_.:-=+*#---====.x|~v^"];
const stands = new Map([...drawn].map((character, place) => [character, inPlace[place] as string]));

/** For a terminal that knows ASCII alone, which would show each byte of the rest as a riddle. */
export function asciiText(text: string): string {
  return text.replace(/[\u0080-\u{10ffff}]/gu, (character) => stands.get(character) ?? "?");
}
