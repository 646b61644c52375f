import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { indexByLabels, indexBySelector } from "../../src/audit/objects/workload-list.ts";
import { type LabelSelector, matchesLabelSelector } from "../../src/core/cluster/pod.ts";

const key = fc.constantFrom("app", "tier", "__proto__", "a=b");
const labels = fc.dictionary(key, fc.constantFrom("x", "y", "b=x"), { maxKeys: 3 });
const requirement = fc.record({
  key,
  operator: fc.constantFrom("In", "NotIn", "Exists", "DoesNotExist"),
  values: fc.subarray(["x", "y"]),
});
const selector: fc.Arbitrary<LabelSelector | undefined> = fc.option(
  fc.record({ matchLabels: labels, matchExpressions: fc.array(requirement, { maxLength: 2 }) }),
  { nil: undefined },
) as fc.Arbitrary<LabelSelector | undefined>;

describe("a label index", () => {
  it("finds the same objects as a full scan, in the same order", () => {
    fc.assert(
      fc.property(fc.array(labels, { maxLength: 8 }), selector, (all, asked) => {
        const items = all.map((own, at) => ({ at, own }));
        const wanted = items.filter(
          ({ own }) => asked !== undefined && matchesLabelSelector(asked, own),
        );

        expect(indexByLabels(items, ({ own }) => own)(asked)).toEqual(wanted);
      }),
    );
  });

  it("finds the same selectors as a full scan, in the same order", () => {
    fc.assert(
      fc.property(fc.array(selector, { maxLength: 8 }), labels, (all, asked) => {
        const items = all.map((own, at) => ({ at, own }));
        const wanted = items.filter(
          ({ own }) => own !== undefined && matchesLabelSelector(own, asked),
        );

        expect(indexBySelector(items, ({ own }) => own)(asked)).toEqual(wanted);
      }),
    );
  });
});
