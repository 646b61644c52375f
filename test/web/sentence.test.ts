import { expect, it } from "vitest";
import { momentText } from "../../src/web/words/format.ts";
import { withLocalTimes } from "../../src/web/words/sentence.tsx";

const now = Date.UTC(2026, 10, 20, 12);
const about = { now, language: "en" } as const;

it("instants in a sentence are told on the viewer's clock, however often there are some", () => {
  const at = "2026-11-21T02:03:04.567Z";
  const shown = momentText(Date.parse(at), now, "en");
  expect(shown).toMatch(/^Sat,? 21 Nov/);
  expect(withLocalTimes(`n1 leaves at ${at}; deadline ${at}`, about)).toBe(
    `n1 leaves at ${shown}; deadline ${shown}`,
  );
});

it("what is no instant stays as it is", () => {
  for (const text of ["n1 is drained.", "2026-13-45T99:00:00Z", "<b>2026</b>"]) {
    expect(withLocalTimes(text, about)).toBe(text);
  }
});
