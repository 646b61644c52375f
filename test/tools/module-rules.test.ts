import { describe, expect, it } from "vitest";
import { moduleOf } from "../../tools/module-graph.ts";
import { type Exceptions, moduleFindings } from "../../tools/module-rules.ts";

const none: Exceptions = { types: [], folders: {}, smallFiles: [], bags: [] };

function findings(
  files: Readonly<Record<string, string>>,
  except: Partial<Exceptions> = {},
): readonly string[] {
  const modules = Object.entries(files).map(([path, text]) =>
    moduleOf({ path, text, lines: text.split("\n") }),
  );
  return moduleFindings(modules, { ...none, ...except });
}

/** Long enough to be a file of its own. */
const long = "\n".repeat(60);

describe("exports", () => {
  it("need only one importer, even if it is a test or a dynamic import", () => {
    expect(
      findings({
        "src/a.ts": `export const one = 1;\nexport async function two() {}\nexport type Three = 3;${long}`,
        "src/b.ts": `export function four() {}${long}`,
        "src/c.ts":
          'import { one, type Three as T } from "./a.ts";\nawait import(\n  "./b.ts"\n);\n',
        "test/a.test.ts": 'import {\n  two,\n} from "../src/a.ts";\n',
      }),
    ).toEqual([]);
  });

  it("that nothing imports are reported, types only if unused in their own file too", () => {
    expect(
      findings({
        "src/a.ts": `export const one = 1;\nexport type Idle = 2;\nexport type Used = 3;\nexport function two(used: Used) {}${long}`,
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
        "src/a.ts": `export const one = 1;${long}`,
        "src/x/a.ts": `export const one = 1;${long}`,
        "src/b.ts": 'import { one } from "./x/a.ts";\n',
      }),
    ).toEqual(["src/a.ts: nothing imports one, so it need not be exported"]);
  });
});

describe("names of options types", () => {
  const files = { "src/a.ts": `interface CloudParts {}\ninterface CloudOptions {}\n${long}` };

  it("are reported if they only say that some values belong together", () => {
    expect(findings(files)).toEqual([
      "src/a.ts: CloudParts does not say what it holds: call it CloudOptions, or what it is",
    ]);
  });

  it("may stay on the list, which can only shrink", () => {
    expect(findings(files, { bags: ["CloudParts"] })).toEqual([]);
    expect(findings({ "src/a.ts": long }, { bags: ["CloudParts"] })).toEqual([
      "CloudParts keeps the rule now: take it off the list of bags",
    ]);
  });

  it("are not checked in tests", () => {
    expect(findings({ "test/a.test.ts": "interface Tools {}\n" })).toEqual([]);
  });
});

describe("type names", () => {
  const twice = {
    "src/a.ts": `export interface Stage {}\nexport const a: Stage = {};${long}`,
    "src/b.ts": 'import { a } from "./a.ts";\ntype Stage = 1;\n',
  };

  it("are reported if an exported one is declared again", () => {
    expect(findings(twice)).toEqual(["the type Stage is declared in src/a.ts, src/b.ts"]);
  });

  it("may be declared again if they are private, or in tests", () => {
    expect(
      findings({
        "src/a.ts": "interface Stage {}\n",
        "src/b.ts": "interface Stage {}\n",
        "test/c.ts": "interface Stage {}\n",
      }),
    ).toEqual([]);
  });

  it("must leave the list of exceptions once they are declared only once", () => {
    expect(findings(twice, { types: ["Stage"] })).toEqual([]);
    expect(findings({}, { types: ["Stage"] })).toEqual([
      "Stage keeps the rule now: take it off the list of types declared twice",
    ]);
  });
});

describe("small files", () => {
  const small = {
    "src/x/a.ts": "export const a = 1;\n",
    "src/x/b.ts": 'import { a } from "./a.ts";\n',
  };

  it("with one importer are reported", () => {
    expect(findings(small)).toEqual([
      "src/x/a.ts: 1 lines that only src/x/b.ts imports: they can stand there",
    ]);
  });

  it("may stay separate with a test of their own, a second importer or as a seam", () => {
    expect(findings({ ...small, "test/a.test.ts": "" })).toEqual([]);
    expect(findings({ ...small, "src/x/c.ts": 'import { a } from "./a.ts";\n' })).toEqual([]);
    expect(
      findings({
        "src/contracts/a.ts": "export const a = 1;\n",
        "src/b.ts": 'import { a } from "./contracts/a.ts";\n',
      }),
    ).toEqual([]);
  });

  it("may stay separate from an importer in another folder", () => {
    const importer = { "src/y/b.ts": 'import { a } from "../x/a.ts";\n' };
    expect(findings({ "src/x/a.ts": "export const a = 1;\n", ...importer })).toEqual([]);
  });

  it("may stay separate if they are imported dynamically", () => {
    expect(findings({ ...small, "src/x/b.ts": 'const a = await import("./a.ts");\n' })).toEqual([]);
  });

  it("must leave the list of exceptions once they have grown or are gone", () => {
    expect(findings(small, { smallFiles: ["src/x/a.ts"] })).toEqual([]);
    expect(findings({}, { smallFiles: ["src/x/a.ts"] })).toEqual([
      "src/x/a.ts keeps the rule now: take it off the list of small files",
    ]);
  });
});

describe("folders", () => {
  const sixteen = Object.fromEntries(
    Array.from({ length: 16 }, (_, index) => [`src/full/f${index}.ts`, ""]),
  );

  it("may have fifteen files, or as many as the list of exceptions says", () => {
    expect(findings(sixteen)).toEqual(["src/full: 16 files, at most 15"]);
    expect(findings(sixteen, { folders: { "src/full": 16 } })).toEqual([]);
    expect(findings({ ...sixteen, "src/full/x.ts": "" }, { folders: { "src/full": 16 } })).toEqual([
      "src/full: 17 files, at most 16",
    ]);
  });

  it("must have their number in the list lowered when a file goes", () => {
    expect(findings(sixteen, { folders: { "src/full": 17 } })).toEqual([
      "src/full: 16 files now: lower its 17 in the list of folders",
    ]);
    expect(findings({}, { folders: { "src/full": 16 } })).toEqual([
      "src/full: 0 files now: lower its 16 in the list of folders",
    ]);
  });
});
