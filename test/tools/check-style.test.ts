import { describe, expect, it } from "vitest";
import { styleFindings } from "../../tools/check-style.ts";

function findings(...lines: readonly string[]): readonly string[] {
  return styleFindings({ path: "src/core/some-file.ts", text: lines.join("\n"), lines });
}

const hundred = "ten words ".repeat(10);

describe("comments", () => {
  it.each(["// ", "/** ", " * ", "  // "])("are reported if wider than 100 columns: %s", (mark) => {
    const wide = `${mark}${hundred}`;
    expect(findings("", wide)).toEqual([
      `src/core/some-file.ts:2: a comment of ${wide.length} columns, at most 100`,
    ]);
    expect(findings(wide.slice(0, 100))).toEqual([]);
  });

  it("may be wider if they cannot be broken", () => {
    expect(findings(`// see https://kubernetes.io/${"a".repeat(90)}`)).toEqual([]);
    expect(findings(`// biome-ignore lint/suspicious/noExplicitAny: ${hundred}`)).toEqual([]);
  });

  it.each([
    [" * What is taken back is not told.", "use withdrawn, cancelled or undone"],
    ["// The node goes back to work.", "use uncordoned"],
    ["/** How an instance is let go. */", "use released, stopped"],
  ])("may not use the dialect's phrases: %s", (comment, instead) => {
    expect(findings(comment)).toEqual([`src/core/some-file.ts:1: ${comment.trim()}: ${instead}`]);
  });

  it("do not include strings that only look like comments", () => {
    expect(findings(`  *'|get|'*) ${hundred}`)).toEqual([]);
  });
});

describe("names", () => {
  it.each([
    ["  const letsGo = budget.disruptionsAllowed > 0;", "released, allowsEviction"],
    ["  readonly toldDeadlineAt?: Instant;", "announcedAt, reportedAt"],
    ['  log.info("left-alone", { about });', "skipped, placeholder-"],
    // biome-ignore lint/suspicious/noTemplateCurlyInString: as a file has it.
    ["  return `room-${podUid}`;", "skipped, placeholder-"],
  ])("may not be the dialect's: %s", (line, instead) => {
    expect(findings(line)).toEqual([`src/core/some-file.ts:1: ${line.trim()}: use ${instead}`]);
  });

  it("may be the field's, and comments may explain them", () => {
    expect(findings("const released = 1;", "// In place of letGo.", 'const a = "rooms";')).toEqual(
      [],
    );
  });
});

describe("a fetch function", () => {
  const inFile = (path: string) =>
    styleFindings({ path, text: "", lines: ["  readonly fetch: typeof fetch;"] });

  it("may not be taken where a policy names the host", () => {
    for (const path of ["src/actions/alertmanager.ts", "src/kube/fleet.ts", "src/cli/doctor/x.ts"])
      expect(inFile(path)).toEqual([expect.stringContaining("src/actions/http-sender.ts")]);
    expect(inFile("src/cloud/gcp/compute-client.ts")).toEqual([]);
  });
});

describe("tests that share a process", () => {
  const inFile = (path: string, line: string) => styleFindings({ path, text: line, lines: [line] });

  it.each([
    "  vi.resetModules();",
    'vi.mock("../../src/cloud/clouds.ts");',
    "  process.env = former;",
    "  globalThis.fetch = fetched;",
    "  process.chdir(folder);",
  ])("may not change it: %s", (line) => {
    expect(inFile("test/core/some.test.ts", line)).toEqual([
      `test/core/some.test.ts:1: ${line.trim()}: other files share the process of this one`,
    ]);
    expect(inFile("test/cloud/fourth-cloud.test.ts", line)).toEqual([]);
  });

  it.each([
    "  const seed = process.env.SEED === undefined ? 1 : 2;",
    '  process.env.AWS_REGION = "eu-west-1";',
    '  vi.spyOn(console, "error");',
    "  const sent = vi.fn();",
  ])("may do what does not outlast a file: %s", (line) => {
    expect(inFile("test/core/some.test.ts", line)).toEqual([]);
  });
});

describe("functions", () => {
  const body = Array.from({ length: 70 }, () => "  call();");

  it.each([
    ["on one line", ["function long(a: string): void {"]],
    [
      "over several",
      ["export async function long(", "  a: string,", "): Promise<", "  void", "> {"],
    ],
  ])("of more than 70 lines are reported, with a head %s", (_, head) => {
    expect(findings(...head, ...body, "}")).toEqual([
      `src/core/some-file.ts:1: a function of ${head.length + 70} lines, at most 70`,
    ]);
    expect(findings(...head, ...body.slice(head.length), "}")).toEqual([]);
  });

  it("are not confused with calls in them", () => {
    const call = ["  const found = list.map((one) =>", "    nameOf(one),", "  );"];
    expect(findings("function short() {", ...call, "}", ...body, "    }")).toEqual([]);
  });
});
