import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { compileCache } from "../support/compile-cache.ts";

const program = join(import.meta.dirname, "../../src/cli/main.ts");
const folder = mkdtempSync(join(tmpdir(), "lastcall-closed-pipe-"));

afterAll(() => rmSync(folder, { recursive: true }));

/** More of them than a pipe takes at once. */
function writeWorkloads(graceSeconds: number): string {
  const template = { spec: { terminationGracePeriodSeconds: graceSeconds, containers: [] } };
  const items = Array.from({ length: 2000 }, (_, place) => ({
    ...{ apiVersion: "apps/v1", kind: "Deployment", metadata: { name: `web-${place}` } },
    spec: { template },
  }));
  const file = join(folder, `${graceSeconds}.json`);
  writeFileSync(file, JSON.stringify({ apiVersion: "v1", kind: "List", items }));
  return file;
}

it.each([
  { what: "with findings", graceSeconds: 600, code: 3 },
  { what: "without", graceSeconds: 10, code: 0 },
])("lastcall audit | head has the exit code of the audit, $what", ({ graceSeconds, code }) => {
  const pipe = 'set -o pipefail; "$0" "$1" audit --platform gke -f "$2" | head -n 1; echo $?';
  const printed = execFileSync(
    "bash",
    ["-c", pipe, process.execPath, program, writeWorkloads(graceSeconds)],
    { encoding: "utf8", env: { PATH: process.env.PATH, HOME: folder, ...compileCache } },
  );
  expect(printed.trim().split("\n").at(-1)).toBe(String(code));
});
