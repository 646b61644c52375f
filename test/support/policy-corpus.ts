import { readdirSync, readFileSync } from "node:fs";

/** One file of the policy corpus under `test/golden/policies`. */
export interface CorpusFile {
  readonly file: string;
  readonly text: string;
  /** `# expect:` of a bad file: its first problem as `file:line: field path: found, wanted`. */
  readonly expect: string;
  /** `# local-only:` of a bad file: why the API server cannot refuse it. */
  readonly localOnly?: string | undefined;
}

/** Each bad policy has one mistake, and the good ones have none. */
export function readCorpus(kind: "bad" | "good"): readonly CorpusFile[] {
  const folder = new URL(`../golden/policies/${kind}/`, import.meta.url);
  return readdirSync(folder).map((file) => {
    const text = readFileSync(new URL(file, folder), "utf8");
    const localOnly = /^# local-only: (.+)$/m.exec(text)?.[1];
    return { file, text, expect: /^# expect: (.+)$/m.exec(text)?.[1] ?? "", localOnly };
  });
}
