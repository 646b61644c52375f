import fc from "fast-check";
import type { KubeObject } from "../../src/contracts/kube-api.ts";

/** Values that readers trip over: names that every object has, invalid dates, very long texts. */
const oddValues: readonly unknown[] = [
  undefined,
  null,
  "",
  "constructor",
  "__proto__",
  "toString",
  "True",
  "true",
  0,
  -1,
  1e300,
  [],
  [[]],
  [null],
  {},
  { toString: 5 },
  ["2026-11-20T00:00:00Z"],
  "2026-02-30T00:00:00Z",
  "2026-11-20T24:00:01Z",
  "0000-00-00T00:00:00Z",
  "+275760-09-13T00:00:00Z",
  "Preempt Scheduled: Sat, 99 Aug 2026 05:41:02 GMT. EventId: 0",
  "node is shutting down",
  "x".repeat(5000),
];

/** Any JSON, mostly of an unexpected type. */
export const foreignValue: fc.Arbitrary<unknown> = fc.oneof(
  fc.constantFrom(...oddValues),
  fc.string({ maxLength: 60, unit: "binary" }),
  fc.jsonValue({ maxDepth: 2 }),
);

/** Valid objects with some of their parts, large or small, replaced or removed. */
export function foreignObject(samples: readonly KubeObject[]): fc.Arbitrary<KubeObject> {
  const wound = fc.tuple(fc.nat({ max: 1000 }), foreignValue);
  return fc
    .tuple(fc.constantFrom(...samples), fc.array(wound, { minLength: 1, maxLength: 4 }))
    .map(([sample, wounds]) => {
      const object = structuredClone(sample);
      // Copied each time: a value that contains itself would not be JSON.
      for (const [place, value] of wounds) {
        replacePart(object, { place, value: structuredClone(value) });
      }
      return object;
    });
}

function replacePart(
  object: object,
  { place, value }: { readonly place: number; readonly value: unknown },
): void {
  const parts = partsOf(object);
  const part = parts[place % Math.max(1, parts.length)];
  if (part !== undefined) (part.of as Record<string, unknown>)[part.key] = value;
}

function partsOf(value: unknown): readonly { readonly of: object; readonly key: string }[] {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) => [{ of: value, key }, ...partsOf(inner)]);
}
