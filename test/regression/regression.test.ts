import { describe, expect, it } from "vitest";
import { openCheckers, readCorpus } from "../fault-machine/corpus.ts";
import { runWorld } from "../fault-machine/run-world.ts";
import { describeViolation } from "../fault-machine/story.ts";

const open = openCheckers();
const corpus = [...readCorpus()].map(([name, one]) => ({ name, ...one }));

describe("a world that was red once", () => {
  it.each(corpus.filter(({ state }) => state === "Mended"))(
    "$name is mended: $finding",
    async ({ world, checker }) => {
      const { violations } = await runWorld(world);
      expect(violations.filter((one) => one.checker === checker).map(describeViolation)).toEqual(
        [],
      );
    },
    60_000,
  );

  // It fails as soon as somebody mends it: then its `state` becomes `Mended`, and it guards that.
  it.each(corpus.filter(({ state }) => state === "Open"))(
    "$name still breaks $checker: $finding",
    async ({ world, checker }) => {
      const broken = new Set((await runWorld(world)).violations.map((one) => one.checker));
      expect(broken).toContain(checker);
      expect(broken.difference(open)).toEqual(new Set());
    },
    60_000,
  );
});
