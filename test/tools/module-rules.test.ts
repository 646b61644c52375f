import { describe, expect, it } from "vitest";
import { moduleOf } from "../../tools/module-graph.ts";
import { type Exceptions, moduleFindings } from "../../tools/module-rules.ts";

const none: Exceptions = { types: [], bags: [] };

function findings(
  files: Readonly<Record<string, string>>,
  except: Partial<Exceptions> = {},
): readonly string[] {
  const modules = Object.entries(files).map(([path, text]) =>
    moduleOf({ path, text, lines: text.split("\n") }),
  );
  return moduleFindings(modules, { ...none, ...except });
}

describe("exports", () => {
  it("need only one importer, even if it is a test or a dynamic import", () => {
    expect(
      findings({
        "src/a.ts": `export const one = 1;\nexport async function two() {}\nexport type Three = 3;`,
        "src/b.ts": `export function four() {}`,
        "src/c.ts":
          'import { one, type Three as T } from "./a.ts";\nawait import(\n  "./b.ts"\n);\n',
        "test/a.test.ts": 'import {\n  two,\n} from "../src/a.ts";\n',
      }),
    ).toEqual([]);
  });

  it("that nothing imports are reported, types only if unused in their own file too", () => {
    expect(
      findings({
        "src/a.ts": `export const one = 1;\nexport type Idle = 2;\nexport type Used = 3;\nexport function two(used: Used) {}`,
        "src/b.ts": 'import { two } from "./a.ts";\n',
      }),
    ).toEqual([
      "src/a.ts: nothing imports one, so it need not be exported",
      "src/a.ts: nothing imports Idle, so it need not be exported",
    ]);
  });

  it("of another file with the same name do not count", () => {
    expect(
      findings({
        "src/a.ts": `export const one = 1;`,
        "src/x/a.ts": `export const one = 1;`,
        "src/b.ts": 'import { one } from "./x/a.ts";\n',
      }),
    ).toEqual(["src/a.ts: nothing imports one, so it need not be exported"]);
  });
});

describe("names of options types", () => {
  const files = { "src/a.ts": `interface CloudParts {}\ninterface CloudOptions {}\n` };

  it("are reported if they only say that some values belong together", () => {
    expect(findings(files)).toEqual([
      "src/a.ts: CloudParts does not say what it holds: call it CloudOptions, or what it is",
    ]);
  });

  it("may stay on the list, which can only shrink", () => {
    expect(findings(files, { bags: ["CloudParts"] })).toEqual([]);
    expect(findings({ "src/a.ts": "" }, { bags: ["CloudParts"] })).toEqual([
      "CloudParts keeps the rule now: take it off the list of bags",
    ]);
  });

  it("are not checked in tests", () => {
    expect(findings({ "test/a.test.ts": "interface Tools {}\n" })).toEqual([]);
  });
});

describe("type names", () => {
  const twice = {
    "src/a.ts": `export interface Stage {}\nexport const a: Stage = {};`,
    "src/b.ts": 'import { a } from "./a.ts";\ntype Stage = 1;\n',
  };

  const stage = "interface Stage {}\n";

  it.each([
    ["exported", twice],
    ["private", { "src/a.ts": stage, "src/b.ts": stage }],
  ])("are reported if one that is %s is declared again", (_, files) => {
    expect(findings(files)).toEqual(["the type Stage is declared in src/a.ts, src/b.ts"]);
  });

  it("may be declared again in tests", () => {
    expect(findings({ "src/a.ts": stage, "test/b.ts": stage, "test/c.ts": stage })).toEqual([]);
  });

  it("must leave the list of exceptions once they are declared only once", () => {
    expect(findings(twice, { types: ["Stage"] })).toEqual([]);
    expect(findings({}, { types: ["Stage"] })).toEqual([
      "Stage keeps the rule now: take it off the list of types declared twice",
    ]);
  });
});
