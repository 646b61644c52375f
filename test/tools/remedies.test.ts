import { expect, it } from "vitest";
import { missingRemedies } from "../../tools/remedies.ts";

const text = [
  "| reason | why | what to do |",
  "|---|---|---|",
  "| `Spaced` | the plan has put it there | nothing |",
  "| `Missed` | its time passed |  |",
  "| `Frozen` | a freeze |",
  "| `OnHold` | by `a\\|b` | let it end |",
  "`NotYet` is spoken of, but in no table.",
].join("\n");

it("each reason needs a table row of its own with a cause and a remedy", () => {
  const words = ["Spaced", "Missed", "Frozen", "OnHold", "NotYet"];
  expect(missingRemedies({ path: "page.md", text, words })).toEqual([
    "page.md: Missed has no cause, or nothing to do",
    "page.md: Frozen has no cause, or nothing to do",
    "page.md: NotYet is not explained",
  ]);
});
