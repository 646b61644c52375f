import fc from "fast-check";
import { expect, it } from "vitest";
import { PictureChanges } from "../../src/board/board-feed.ts";
import { type BoardPicture, noRights, withChange } from "../../src/board/stream.ts";

/** Rows as far as a change compares them: an id, and one more field. */
function pictureOf(rows: ReadonlyMap<string, number>, cluster: string): BoardPicture {
  return {
    fleet: {
      ...{
        cluster,
        isDemo: false,
        missing: [],
        rights: noRights,
        days: [],
        headline: [],
        isCounted: false,
      },
      connection: { kind: "Live" },
    },
    rows: [...rows].map(([id, departAt]) => ({ id, departAt }) as never),
    past: [],
    policies: [],
  };
}

const pictures = fc.array(
  fc.record({
    rows: fc
      .array(fc.tuple(fc.constantFrom("a", "b", "c", "d", "e"), fc.nat({ max: 3 })))
      .map((pairs) => new Map(pairs)),
    cluster: fc.constantFrom("x", "y"),
  }),
  { minLength: 1, maxLength: 12 },
);

function sorted({ fleet, rows }: BoardPicture) {
  return { fleet, rows: rows.toSorted((a, b) => (a.id < b.id ? -1 : 1)) };
}

it("changes lead from any picture to the next, row by row", () => {
  fc.assert(
    fc.property(pictures, (steps) => {
      const changes = new PictureChanges();
      let shown: BoardPicture | undefined;
      for (const step of steps) {
        const next = pictureOf(step.rows, step.cluster);
        const change = changes.of(next);
        if (shown === undefined) shown = next;
        else if (change !== undefined) shown = withChange(shown, change);
        expect(sorted(shown)).toEqual(sorted(next));
      }
    }),
  );
});

it("a page that reconnects gets the changes since any picture", () => {
  fc.assert(
    fc.property(pictures, (steps) => {
      const changes = new PictureChanges();
      const shown = new Map<number, BoardPicture>();
      for (const step of steps) {
        changes.of(pictureOf(step.rows, step.cluster));
        shown.set(changes.seq, pictureOf(step.rows, step.cluster));
      }
      const last = shown.get(changes.seq) as BoardPicture;
      for (const [seq, picture] of shown) {
        const change = changes.since(seq);
        expect(sorted(withChange(picture, change ?? {}))).toEqual(sorted(last));
      }
      expect(sorted(changes.picture() as BoardPicture)).toEqual(sorted(last));
    }),
  );
});

it("reports at once that a fleet is gone, and forgets rows that have been gone for long", () => {
  const changes = new PictureChanges();
  const fleet = (name: string): ReadonlyMap<string, number> =>
    new Map(Array.from({ length: 600 }, (_, place) => [`${name}-${place}`, 1]));
  changes.of(pictureOf(fleet("a"), "x"));
  const first = changes.seq;
  expect(changes.of(pictureOf(new Map(), "x"))?.rows?.gone).toHaveLength(600);
  expect(changes.since(first)?.rows?.gone).toHaveLength(600);
  const second = changes.seq;
  changes.of(pictureOf(new Map([["b", 1]]), "x"));
  expect(changes.since(first)).toBeUndefined();
  expect(changes.since(second)?.rows).toEqual({ set: [{ id: "b", departAt: 1 }], gone: [] });
});

it("an unchanged picture is not reported", () => {
  const changes = new PictureChanges();
  const rows = new Map([["a", 1]]);
  changes.of(pictureOf(rows, "x"));
  expect(changes.of(pictureOf(rows, "x"))).toBeUndefined();
});

it("a new past departure is put first, before those that a page already has", () => {
  const picture = (...endedAts: readonly number[]): BoardPicture => ({
    ...pictureOf(new Map(), "x"),
    past: endedAts.map((endedAt) => ({ id: `at-${endedAt}`, endedAt }) as never),
  });
  const changes = new PictureChanges();
  changes.of(picture(30, 20));
  const change = changes.of(picture(40, 30, 20));
  const shown = change && withChange(picture(30, 20), change);
  expect(shown?.past.map(({ endedAt }) => endedAt)).toEqual([40, 30, 20]);
});
