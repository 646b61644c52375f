import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import type { CommandIo } from "../../src/cli/command-line/command.ts";
import { runCommandLine } from "../../src/cli/command-line/command-line.ts";
import { seededRng } from "../../src/core/chance/chance.ts";
import type { PlanReport } from "../../src/core/plan/plan-report.ts";
import { processIo } from "../../src/runtime/process-io.ts";
import { realClock } from "../../src/runtime/real-clock.ts";

const page = readFileSync("docs/plans/README.md", "utf8");

interface Example {
  readonly title: string;
  /** The lines of the picture: hours, windows, plan. */
  readonly picture: readonly string[];
  readonly words: readonly string[];
  readonly printed: string;
}

const examples: readonly Example[] = page
  .split(/^## /m)
  .slice(1)
  .map((section) => {
    const [picture = "", shell = ""] = [...section.matchAll(/^```\n(.*?)^```$/gms)].map(
      ([, block]) => block ?? "",
    );
    const end = shell.indexOf("\n");
    return {
      title: section.slice(0, section.indexOf("\n")),
      picture: picture.trimEnd().split("\n"),
      words: shell.slice(0, end).split(" ").slice(2),
      printed: shell.slice(end + 1),
    };
  });

async function run(words: readonly string[]): Promise<{ code: number; out: string; err: string }> {
  const [out, err]: [string[], string[]] = [[], []];
  const { files } = processIo();
  const io: CommandIo = {
    out: (text) => void out.push(text),
    err: (text) => void err.push(text),
    ...{ files, isTerminal: false, colour: false, columns: 100, env: {}, fetch },
    ...{ clock: realClock, rng: seededRng(1), signal: new AbortController().signal },
  };
  const code = await runCommandLine(words, io);
  return { code, out: out.join(""), err: err.join("") };
}

/** Where each node is drawn in the picture, in minutes after midnight. */
function drawn(picture: readonly string[]): Map<string, number> {
  const [hours = "", ...rows] = picture;
  const [first, second] = [...hours.matchAll(/(\d\d):(\d\d)/g)].map((match) => ({
    column: match.index,
    minute: Number(match[1]) * 60 + Number(match[2]),
  }));
  if (first === undefined || second === undefined) throw new Error("a picture has two hours");
  const aColumn = ((second.minute - first.minute + 1440) % 1440) / (second.column - first.column);
  const plan = rows.find((row) => row.startsWith("plan")) ?? "";
  return new Map(
    [...plan.matchAll(/n\d/g)].map(({ 0: name, index }) => [
      name,
      first.minute + (index - first.column) * aColumn,
    ]),
  );
}

describe.each(examples)("the plan of a hand-made fleet: $title", ({ picture, words, printed }) => {
  it("is printed as the page shows it", async () => {
    expect(await run(words)).toEqual({ code: 0, out: printed, err: "" });
  });

  it("is drawn to within half a column", async () => {
    const { out } = await run([...words, "-o", "json"]);
    const [policy] = (JSON.parse(out) as PlanReport).policies;
    const stands = drawn(picture);
    expect(stands.size).toBeGreaterThan(1);
    for (const [name, minute] of stands) {
      const departAt = policy?.departures.find(({ node }) => node === name)?.departAt ?? "";
      const [hour, rest] = [Number(departAt.slice(11, 13)), Number(departAt.slice(14, 16))];
      // A picture may start on the evening before.
      const apart = (hour * 60 + rest - minute + 2880) % 1440;
      expect(Math.min(apart, 1440 - apart), name).toBeLessThanOrEqual(4);
    }
  });
});

it("an infeasible plan exits with 3 under --strict", async () => {
  const short = examples.find(({ words }) => words.join(" ").includes("short-window"));
  expect(await run([...(short?.words ?? []), "--strict"])).toMatchObject({ code: 3 });
});
