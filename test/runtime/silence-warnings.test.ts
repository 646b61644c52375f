import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, it } from "vitest";

const run = promisify(execFile);

it("only the warnings of the given names are silenced", async () => {
  const program = `
    import { silenceWarnings } from "./src/runtime/process-io.ts";
    silenceWarnings("MetadataLookupWarning");
    process.emitWarning("all promises were rejected", "MetadataLookupWarning");
    process.emitWarning("something else", "OtherWarning");
  `;
  const { stderr } = await run("node", ["--input-type=module", "--eval", program]);
  expect(stderr).toMatch(/OtherWarning: something else/);
  expect(stderr).not.toContain("Metadata");
});
