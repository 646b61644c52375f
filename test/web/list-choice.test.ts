import { describe, expect, it } from "vitest";
import { choiceIn, type ListChoice, searchOf, sortedBy } from "../../src/web/list-choice.ts";

const plain: ListChoice = { filter: "", sort: "time", isDescending: false, group: undefined };

describe("the choice of a list", () => {
  it.each<[string, Partial<ListChoice>]>([
    ["", {}],
    ["?filter=web+b", { filter: "web b" }],
    ["?sort=-time", { isDescending: true }],
    ["?sort=pool&group=zone", { sort: "pool", group: "zone" }],
    ["?filter=%26%3D%23&sort=-node", { filter: "&=#", sort: "node", isDescending: true }],
  ])("is the same after a way through the address %s", (search, change) => {
    const choice = { ...plain, ...change };
    expect(choiceIn(search)).toEqual(choice);
    expect(searchOf(choice)).toBe(search);
  });

  it.each([["?sort=price"], ["?sort=-"], ["?group=rack"], ["?token=abc"]])(
    "ignores what it does not know: %s",
    (search) => {
      expect(choiceIn(search)).toEqual(plain);
    },
  );

  it("sorts by a column, and the other way at the second click", () => {
    const once = sortedBy({ ...plain, isDescending: true }, "zone");
    expect(once).toMatchObject({ sort: "zone", isDescending: false });
    expect(sortedBy(once, "zone")).toMatchObject({ sort: "zone", isDescending: true });
    expect(sortedBy(sortedBy(once, "zone"), "zone").isDescending).toBe(false);
  });
});
