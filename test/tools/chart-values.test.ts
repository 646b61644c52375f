import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { chartValuesIn, readChartValues } from "../../tools/chart-values.ts";

describe("a value of the chart", () => {
  const text = `# About the file.

## Names

# What all objects
# are called.
name: ""
image:
  # Where it is pulled from.
  repository: a
  # Left out.
  #digest: b

## Pods

# What a pod may use.
resources:
  limits:
    memory: 1Mi
list:
  # Several.
  of:
    - key: c
`;

  test("is a key with a comment above it, and has all that is below it", () => {
    expect(chartValuesIn(text)).toEqual([
      { path: "name", title: "Names", about: "What all objects are called.", default: "" },
      { path: "image.repository", title: "Names", about: "Where it is pulled from.", default: "a" },
      { path: "image.digest", title: "Names", about: "Left out." },
      {
        ...{ path: "resources", title: "Pods", about: "What a pod may use." },
        default: { limits: { memory: "1Mi" } },
      },
      { path: "list.of", title: "Pods", about: "Several.", default: [{ key: "c" }] },
    ]);
  });

  test("is in values.yaml and in values.schema.json, and its comment is a sentence", () => {
    const values = readChartValues();
    const schema = JSON.parse(readFileSync("deploy/chart/values.schema.json", "utf8"));
    // Helm itself has this one.
    const described = pathsIn(schema).filter((path) => path !== "global");
    expect(values.map(({ path }) => path).toSorted()).toEqual(described.toSorted());
    for (const { path, about } of values) expect(about, path).toMatch(/^[A-Z`].*\.$/);
  });
});

interface Schema {
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
}

/** The paths of all values: what is below a description belongs to the value. */
function pathsIn({ properties = {} }: Schema): readonly string[] {
  return Object.entries(properties).flatMap(([name, inner]) => {
    const isSection = inner.properties !== undefined && inner.description === undefined;
    return isSection ? pathsIn(inner).map((path) => `${name}.${path}`) : [name];
  });
}
