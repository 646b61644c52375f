import { describe, expect, it } from "vitest";
import { departureName, freeName } from "../../../src/core/departure/departure.ts";

const uid = "0b1f7a3e-7f0e-4c53-9c1a-5d1f6f2f8a11";
const n1 = { name: "n1", uid };

/** The name of a node with `length` characters, in labels of at most 63. */
function longName(length: number): string {
  return `${"a".repeat(60)}.${"b".repeat(60)}.${"c".repeat(60)}.${"d".repeat(63)}`
    .padEnd(253, ".eeeeee")
    .slice(0, length);
}

/** What the API server accepts as an object's name (RFC 1123 subdomain). */
const allowed = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;

describe("the name of a departure", () => {
  it("is the node's name and the first eight characters of its uid, by contract", () => {
    expect(departureName(n1)).toBe("n1-0b1f7a3e");
    expect(departureName({ name: "ip-10-0-0-1.eu-west-1.compute.internal", uid })).toBe(
      "ip-10-0-0-1.eu-west-1.compute.internal-0b1f7a3e",
    );
  });

  it("ends in a number from the second one of the node on", () => {
    expect(departureName(n1, 2)).toBe("n1-0b1f7a3e-2");
    expect(departureName(n1, 11)).toBe("n1-0b1f7a3e-11");
  });

  // 244 characters, a dash and eight more make the 253 that a name may have.
  it.each([
    [244, 1, `${longName(244)}-0b1f7a3e`],
    [245, 1, `node-${uid}`],
    [242, 2, `${longName(242)}-0b1f7a3e-2`],
    [243, 2, `node-${uid}-2`],
    [253, 999, `node-${uid}-999`],
  ])("fits for a node name of %i characters and departure number %i", (length, count, wanted) => {
    const name = departureName({ name: longName(length), uid }, count);
    expect(name).toBe(wanted);
    expect(name.length).toBeLessThanOrEqual(253);
    expect(name).toMatch(allowed);
  });
});

describe("the free departure name of a node", () => {
  const own = { node: n1 };
  const other = { node: { name: "n2", uid: "ffffffff-0000" } };

  function freeAmong(there: Readonly<Record<string, typeof own>>) {
    return freeName(n1, (name) => there[name]);
  }

  it("is the first one if there is no departure", () => {
    expect(freeAmong({})).toEqual({ name: "n1-0b1f7a3e", namesTaken: [] });
  });

  it("is the next number if the node's own departures have the earlier ones", () => {
    const there = { "n1-0b1f7a3e": own, "n1-0b1f7a3e-2": own };
    expect(freeAmong(there)).toEqual({ name: "n1-0b1f7a3e-3", namesTaken: [] });
  });

  it("skips names that belong to departures of another node, and reports them", () => {
    const there = { "n1-0b1f7a3e": other, "n1-0b1f7a3e-2": own, "n1-0b1f7a3e-3": other };
    expect(freeAmong(there)).toEqual({
      name: "n1-0b1f7a3e-4",
      namesTaken: ["n1-0b1f7a3e", "n1-0b1f7a3e-3"],
    });
  });
});
