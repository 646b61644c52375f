/** The tests that a page names: each must exist, and each row of its tables must name one. */

/** Returns the text of a file of the repository; undefined if it does not exist. */
export type ReadText = (path: string) => string | undefined;

/** A test file and the names of its tests: `test/x.test.ts` "does this", "and that". */
const named = /`(test\/[^`]+\.ts)`((?:,? "[^"]+")+)/g;

/** The problems of a page, one per line. A row is a table line that starts with a number. */
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

/** A test's name follows the opening parenthesis, or is on its own line if the call is too long. */
function isName(quoted: string, source: string): boolean {
  return (
    source.includes(`(${quoted}`) || source.split("\n").some((line) => line.trim() === `${quoted},`)
  );
}
