/**
 * How long PodDisruptionBudgets are respected under a notice: eight pods behind `maxUnavailable: 1`
 * on three nodes that get a notice at once, on the model cluster with the real controller, in
 * virtual time. Prints the table of docs/drain.md; each cell is the worst of all seeds.
 */
import { type BudgetEnd, budgetStory } from "../test/support/budget-story.ts";
import { type Figure, writeResult } from "./result-file.ts";

const seeds = [1, 2, 3, 4, 5];
const exitAfterSeconds = 3;
/** No time for budgets, as a policy may choose, and the default. */
const shares = ["0%", "50%"];

function worst(ends: readonly BudgetEnd[]): BudgetEnd {
  const most = (field: keyof BudgetEnd) => Math.max(...ends.map((end) => end[field]));
  return {
    fewestReady: Math.min(...ends.map((end) => end.fewestReady)),
    emptyAfterSeconds: most("emptyAfterSeconds"),
    forced: most("forced"),
    cut: most("cut"),
    unclean: most("unclean"),
  };
}

async function worstOf(noticeSeconds: number, graceSeconds: number, budgetShare: string) {
  const ends: BudgetEnd[] = [];
  for (const seed of seeds) {
    const story = { noticeSeconds, graceSeconds, exitAfterSeconds, budgetShare, seed };
    ends.push(await budgetStory(story));
  }
  return worst(ends);
}

const figures: Figure[] = [];
const rows: string[] = [];
for (const noticeSeconds of [30, 60, 120]) {
  for (const graceSeconds of [10, 30, 60]) {
    const cells: string[] = [];
    for (const share of shares) {
      const end = await worstOf(noticeSeconds, graceSeconds, share);
      cells.push(`${end.fewestReady}`, `${end.emptyAfterSeconds} s`, `${end.forced}`);
      const name = `notice ${noticeSeconds} s, grace ${graceSeconds} s, budgetShare ${share}`;
      figures.push({ name: `fewest ready: ${name}`, value: end.fewestReady, unit: "pods" });
      figures.push({ name: `empty after: ${name}`, value: end.emptyAfterSeconds, unit: "s" });
    }
    rows.push(`| ${[`${noticeSeconds} s`, `${graceSeconds} s`, ...cells].join(" | ")} |`);
  }
}
const heads = shares.flatMap((share) => [`${share}: fewest ready`, "empty after", "forced"]);
console.log(`| ${["notice", "grace", ...heads].join(" | ")} |`);
console.log(`|${"---|".repeat(2 + heads.length)}`);
console.log(rows.join("\n"));
writeResult({ bench: "budget", setting: { pods: 8, nodes: 3, exitAfterSeconds }, figures });
