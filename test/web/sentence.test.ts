import { expect, it } from "vitest";
import { millis, minutes } from "../../src/core/time/time.ts";
import { readable, readableAtOnce, withLocalTimes } from "../../src/web/words/sentence.tsx";
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

it.each([
  'spec.lifetime.max: found "2026-12-01T00:00:00Z", expected a duration such as 90s or 12h30m (24h?)',
  'n1 is on hold by its annotation lastcall.dev/hold, whose value "1h30m0s" cannot be read (expected "true")',
  'the label says "a \\" 12h30m"',
])("what somebody has written, or is to write, stays as it is: %s", (text) => {
  expect(withLocalTimes(text, about)).toBe(text);
});

it("a time after what is expected is shown as any other", () => {
  expect(withLocalTimes("expected 12h30m; held back by about 1h30m", about)).toBe(
    "expected 12h30m; held back by about 1 h 30 min",
  );
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

it("no line of a list ends within a name that is cut", () => {
  const node = "gke-production-europe-spot-n2-standard-16-8jqnwxjh-vbk2";
  const text = readableAtOnce(`3 nodes are leaving now (${node}, web-1)`, about);
  expect(text).toBe(
    "3 nodes are leaving now (gke-\u2060producti…\u20608jqnwxjh-\u2060vbk2, web-1)",
  );
});
