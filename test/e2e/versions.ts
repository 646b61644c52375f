/**
 * `npm run e2e:versions [version…]`: runs the tests of version-list.ts on a control plane of each
 * version, or of those named, and prints the table of docs/kubernetes-versions.md. What
 * passed is stored, and `npm run generate` writes the page from it.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import {
  patchOf,
  readTriedVersions,
  type TriedVersion,
  triedFiles,
  triedVersions,
  triedVersionsFile,
  versionTable,
} from "./version-list.ts";

const root = join(import.meta.dirname, "../..");
const suffix = ".e2e.test.ts";

/** The part of vitest's JSON report that is read here. */
interface Report {
  readonly success: boolean;
  readonly testResults: readonly {
    readonly name: string;
    readonly assertionResults: readonly { readonly status: string }[];
  }[];
}

interface Run {
  readonly tried: TriedVersion;
  readonly faults: readonly string[];
}

/** The output goes to the terminal. Returns whether it ended with 0. */
function run(args: readonly string[], version: string): boolean {
  const env = { ...process.env, E2E_KUBERNETES: version };
  return spawnSync(process.execPath, args, { cwd: root, env, stdio: "inherit" }).status === 0;
}

function tryVersion(version: string, folder: string): Run {
  const patch = patchOf(version);
  console.log(`\n=== Kubernetes ${patch}`);
  // Before the tests, whose timeouts are too short for a build.
  if (!run(["test/controlplane/build.ts"], version)) {
    return { tried: { version: patch, passed: {} }, faults: [`${patch} could not be built`] };
  }
  const output = join(folder, `${version}.json`);
  const files = triedFiles.map(({ file }) => `test/e2e/${file}${suffix}`);
  const reporters = ["--reporter=default", "--reporter=json", `--outputFile.json=${output}`];
  const vitest = "node_modules/vitest/vitest.mjs";
  const ended = run(
    [vitest, "run", "--config", "vitest.e2e.config.ts", ...reporters, ...files],
    version,
  );
  const { passed, faults } = read(JSON.parse(readFileSync(output, "utf8")));
  const unclear = !ended && faults.length === 0 ? ["the run failed"] : [];
  return {
    tried: { version: patch, passed },
    faults: [...faults, ...unclear].map((fault) => `${patch}: ${fault}`),
  };
}

/** A test that was skipped shows nothing, so only a file whose tests all passed is counted. */
function read({ testResults }: Report): Omit<Run, "tried"> & Pick<TriedVersion, "passed"> {
  const results = new Map(
    testResults.map(({ name, assertionResults }) => [basename(name, suffix), assertionResults]),
  );
  const counts = triedFiles.map(({ file }) => {
    const tests = results.get(file) ?? [];
    const passed = tests.filter(({ status }) => status === "passed").length;
    return { file, passed, isWhole: passed > 0 && passed === tests.length };
  });
  return {
    passed: Object.fromEntries(
      counts.filter(({ isWhole }) => isWhole).map(({ file, passed }) => [file, passed]),
    ),
    faults: counts.filter(({ isWhole }) => !isWhole).map(({ file }) => `${file} did not pass`),
  };
}

const named = process.argv.slice(2);
const versions = named.length > 0 ? named : triedVersions;
const folder = mkdtempSync(join(tmpdir(), "lastcall-versions-"));
const runs = versions.map((version) => tryVersion(version, folder));
rmSync(folder, { recursive: true, force: true });

console.log(`\n${versionTable(runs.map(({ tried }) => tried))}\n`);
const faults = runs.flatMap((one) => one.faults);
for (const fault of faults) console.error(fault);
if (faults.length > 0) process.exitCode = 1;

// A control plane that could not be built says nothing about what was found before.
const ran = runs.map(({ tried }) => tried).filter(({ passed }) => Object.keys(passed).length > 0);
const known = [...readTriedVersions(), ...ran];
const stored = triedVersions.flatMap((version) => {
  return known.findLast((one) => one.version === patchOf(version)) ?? [];
});
writeFileSync(triedVersionsFile, `${JSON.stringify(stored, null, 2)}\n`);
console.log("Stored in test/e2e/versions.json; npm run generate writes the page.");
