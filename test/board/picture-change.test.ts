import fc from "fast-check";
import { expect, it } from "vitest";
import { PictureChanges } from "../../src/board/board-feed.ts";
import { type BoardPicture, noRights, withChange } from "../../src/board/stream.ts";

/** Rows as far as a change looks at them: an id, and anything else. */
function pictureOf(rows: ReadonlyMap<string, number>, cluster: string): BoardPicture {
  return {
    fleet: {
      ...{ cluster, isDemo: false, missing: [], rights: noRights, days: [], isCounted: false },
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

it("changes lead from any picture to any other, row by row", () => {
  fc.assert(
    fc.property(pictures, (steps) => {
      const changes = new PictureChanges();
      let shown: BoardPicture | undefined;
      for (const step of steps) {
        const next = pictureOf(step.rows, step.cluster);
        const change = changes.of(next);
        if (shown === undefined) shown = next;
        else if (change !== undefined) shown = withChange(shown, change);
        const sorted = (picture: BoardPicture) =>
          picture.rows.toSorted((a, b) => (a.id < b.id ? -1 : 1));
        expect(sorted(shown)).toEqual(sorted(next));
        expect(shown.fleet).toEqual(next.fleet);
      }
    }),
  );
});

it("of a picture that is as it was nothing is told", () => {
  const changes = new PictureChanges();
  const rows = new Map([["a", 1]]);
  changes.of(pictureOf(rows, "x"));
  expect(changes.of(pictureOf(rows, "x"))).toBeUndefined();
});

it("what has just departed comes first, and not after what a page knew before", () => {
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
