import { expect, it } from "vitest";
import { millis, minutes } from "../../src/core/time/time.ts";
import { readable, withLocalTimes } from "../../src/web/words/sentence.tsx";
import { momentText } from "../../src/web/words/time-text.ts";

const now = Date.UTC(2026, 10, 20, 12);
const about = { now, language: "en" } as const;

it("all times in a sentence are shown in the viewer's time zone", () => {
  const at = "2026-11-21T02:03:04.567Z";
  const shown = momentText(Date.parse(at), now, "en");
  expect(shown).toMatch(/^Sat,? 21 Nov/);
  expect(withLocalTimes(`n1 leaves at ${at}; deadline ${at}`, about)).toBe(
    `n1 leaves at ${shown}; deadline ${shown}`,
  );
});

it("text that is not a time stays as it is", () => {
  for (const text of ["n1 is drained.", "2026-13-45T99:00:00Z", "<b>2026</b>"]) {
    expect(withLocalTimes(text, about)).toBe(text);
  }
});

it("spans in a sentence are shown in their two largest units, and names are left alone", () => {
  const said = (text: string) => withLocalTimes(text, about);
  expect(said("at least 15m59s350ms instead of 16m0s500ms apart")).toBe(
    "at least 16 min instead of 16 min apart",
  );
  expect(said("held back by about 1h30m; 250ms")).toBe("held back by about 1 h 30 min; 0 s");
  const apart = { reachedMs: millis(98_000), wantedMs: minutes(45) };
  expect(readable({ says: "fleet.CloseTogether", ...apart }, about)).toContain(
    "at least 1 min 38 s instead of 45 min apart",
  );
  for (const text of ["policy 24h", "instead of 45m-pool", "web-1h2m", "1h2m.example", "30s"])
    expect(said(text)).toBe(text);
});
