import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type ControlPlane, startControlPlane } from "../support/control-plane.ts";
import { readCorpus } from "../support/policy-corpus.ts";
import { waitUntil } from "../support/wait-until.ts";

const crds = join(import.meta.dirname, "..", "..", "deploy", "crds");
let plane: ControlPlane;

beforeAll(async () => {
  plane = await startControlPlane({
    withControllerManager: false,
    withScheduler: false,
    withKwok: false,
  });
  const { code, stderr } = await plane.kubectl(["apply", "-k", crds]);
  expect(stderr).toBe("");
  expect(code).toBe(0);
  await waitUntil(async () => (await plane.kubectl(["get", "dpol,dep"])).code === 0, {
    what: "both resources are served",
    timeoutMs: 60_000,
    signal: plane.signal,
  });
});

afterAll(() => plane?.stop());

describe("the API server", () => {
  test.each(readCorpus("good"))("accepts the good policy $file", async ({ text }) => {
    expect(await create(text)).toMatchObject({ code: 0, stderr: "" });
  });

  const refused = readCorpus("bad").filter(({ localOnly }) => localOnly === undefined);
  test.each(refused)("rejects the bad policy $file with the field of its mistake", async (bad) => {
    const { code, stderr } = await create(bad.text);
    expect(code, stderr).toBe(1);
    expect(stderr).toContain(whereOf(bad.expect));
  });

  const daysOrWords = refused.filter(({ file }) => /^duration-in-/.test(file));
  test.each(daysOrWords)("answers $file with one sentence of ours", async ({ text }) => {
    const { stderr } = await create(text);
    expect(stderr).toContain("such as 90s, or 168h for 7 days");
    expect(stderr).not.toMatch(/protobuf|should match/);
  });

  const passed = readCorpus("bad").filter(({ localOnly }) => localOnly !== undefined);
  test.each(passed)("accepts $file, as the file says: $localOnly", async ({ text }) => {
    const { code, stderr } = await create(text);
    // For a file without objects kubectl reports that; it is not a rejected policy.
    if (stderr !== "") expect(stderr).toContain("no objects passed to create");
    else expect(code).toBe(0);
  });
});

/** Creates nothing, so two files may use the same name. */
function create(text: string) {
  const args = ["create", "--dry-run=server", "--validate=strict", "-f", "-"];
  return plane.kubectl(args, { input: text });
}

/** From `file:line: field path: found …`, the part that the error must contain as well. */
function whereOf(expected: string): string {
  const path = /^[^:]+:\d+: ([\w.[\]]+): /.exec(expected)?.[1] ?? "";
  // kubectl looks the resource up by this field first, and reports it in its own words.
  if (path === "apiVersion") return "no matches for kind";
  return path.replace(/^items\[\d+\]\./, "");
}
