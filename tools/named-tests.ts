/** What a page says of tests: each that it names exists, and each row of its tables names one. */

/** The text of a file of the repository; undefined where there is none. */
export type ReadText = (path: string) => string | undefined;

/** A file and the sentences that stand behind it: `test/x.test.ts` "does this", "and that". */
const named = /`(test\/[^`]+\.ts)`((?:,? "[^"]+")+)/g;

/** What is amiss on a page, a line each. A row is a line of a table that begins with a number. */
export function testProblems(page: string, text: string, read: ReadText): string[] {
  return text.split("\n").flatMap((line) => {
    const tests = [...line.matchAll(named)];
    const row = /^\| (\d+) \|/.exec(line)?.[1];
    if (row !== undefined && tests.length === 0) return [`${page}: row ${row} names no test`];
    return tests.flatMap(([, path = "", sentences = ""]) => {
      const source = read(path);
      if (source === undefined) return [`${page}: there is no ${path}`];
      return [...sentences.matchAll(/"[^"]+"/g)]
        .filter(([quoted]) => !isName(quoted, source))
        .map(([quoted]) => `${page}: ${path} has no test ${quoted}`);
    });
  });
}

/** A name opens its call, or stands on a line of its own where the call is too long for one. */
function isName(quoted: string, source: string): boolean {
  return (
    source.includes(`(${quoted}`) || source.split("\n").some((line) => line.trim() === `${quoted},`)
  );
}
