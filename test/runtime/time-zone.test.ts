import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, it } from "vitest";

const file = join(import.meta.dirname, "../../src/runtime/process-io.ts");
const script = `import { processIo } from ${JSON.stringify(file)}; process.stdout.write(processIo().timeZone);`;

it.each([
  ["", "UTC"],
  ["Europe/Berlin", "Europe/Berlin"],
  ["No/Such", "UTC"],
])("the time zone by TZ=%j is %s", async (TZ, zone) => {
  const run = promisify(execFile);
  const args = ["--input-type=module", "--eval", script];
  const { stdout } = await run(process.execPath, args, { env: { ...process.env, TZ } });
  expect(stdout).toBe(zone);
  expect(() => new Intl.DateTimeFormat("en", { timeZone: stdout })).not.toThrow();
});
