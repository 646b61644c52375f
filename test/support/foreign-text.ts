import fc from "fast-check";

const junkTexts = [
  "",
  " ",
  "null",
  "true",
  "0",
  "[]",
  "{}",
  "[[]]",
  '"TRUE"',
  "TRUE\u0000",
  "<html><body>Sign in</body></html>",
  '{"action":',
  '{"__proto__":{"action":"terminate"}}',
  '{"Events":{"length":3}}',
  "\ufeff{}",
  "[".repeat(5000),
  "9".repeat(400),
];

/**
 * Texts that may arrive instead of a cloud's response: pages, truncated documents, values of the
 * wrong type, and valid responses with any part replaced. `samples` are valid responses.
 */
export function foreignText(samples: readonly string[]): fc.Arbitrary<string> {
  const broken = fc
    .tuple(fc.constantFrom(...samples), fc.nat({ max: 200 }), fc.string({ maxLength: 4 }))
    .map(([sample, at, junk]) => sample.slice(0, at) + junk + sample.slice(at + 1));
  const cut = fc
    .tuple(fc.constantFrom(...samples), fc.nat({ max: 200 }))
    .map(([sample, at]) => sample.slice(0, at));
  // Names that every object has, but no table of the project.
  const names = fc.constantFrom("constructor", "__proto__", "toString");
  const value = fc.oneof(fc.jsonValue({ maxDepth: 2 }), names);
  const odd = fc
    .tuple(fc.constantFrom(...samples), value, fc.nat({ max: 10 }))
    .map(([sample, oddValue, place]) => withOddValue(sample, oddValue, place));
  return fc.oneof(
    fc.constantFrom(...junkTexts),
    fc.string({ maxLength: 80, unit: "binary" }),
    fc.json({ maxDepth: 3 }),
    broken,
    cut,
    odd,
  );
}

/** The JSON with the value of its `place`th field replaced; unchanged if it is not JSON. */
function withOddValue(sample: string, value: unknown, place: number): string {
  let seen = -1;
  try {
    return JSON.stringify(JSON.parse(sample), (key, old: unknown) => {
      if (key !== "") seen += 1;
      return key !== "" && seen === place ? value : old;
    });
  } catch {
    return sample;
  }
}
