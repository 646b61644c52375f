/**
 * Bundles what ships: `dist/lastcall.js` and its lazily loaded parts. A bundle starts several
 * times faster than the sources and holds half the memory (docs/adr/0002-dependencies.md).
 */
import { cpSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { rolldown } from "rolldown";
import { licenseText, packagesOf } from "./release/bundled-packages.ts";
import { root } from "./source-tree.ts";

const out = join(root, "dist");
/** Compressed: what a browser loads before it can show the board. */
const mostPageBytes = 150_000;
/** A function starts faster if it has less to read. */
const mostResponderBytes = 1_500_000;

rmSync(out, { recursive: true, force: true });

const settings = {
  platform: "node",
  // Prefers ES modules: the AWS SDK's clients also ship as one file that cannot be tree-shaken.
  resolve: { mainFields: ["module", "main"] as string[] },
  // The polyfill exists for its effect on the global scope.
  treeshake: { moduleSideEffects: (id: string) => id.includes("/temporal-polyfill/") },
  // The oldest maintained release of Node has to parse it.
  transform: { target: "node22" },
} as const;

const build = await rolldown({
  ...settings,
  input: {
    lastcall: join(root, "src/cli/main.ts"),
    // The audit starts it as a worker thread, by its file name.
    "parse-worker": join(root, "src/audit/input/parse-worker.ts"),
    // The agent's image runs this one, on Bun, without the other commands.
    agent: join(root, "src/cli/agent-main.ts"),
    // Loaded first if Node has no Temporal of its own.
    temporal: join(root, "src/runtime/temporal.ts"),
  },
});
const { output } = await build.write({
  dir: out,
  format: "esm",
  minify: true,
  entryFileNames: "[name].js",
  chunkFileNames: "[name]-[hash].js",
});
await build.close();

// The responder is a single file, so that a function can use it as it is.
const responder = await rolldown({ ...settings, input: join(root, "src/cli/lambda-main.ts") });
const { output: responderOutput } = await responder.write({
  file: join(out, "lambda/index.mjs"),
  format: "esm",
  minify: true,
  codeSplitting: false,
});
await responder.close();
const responderBytes = statSync(join(out, "lambda/index.mjs")).size;
if (responderBytes > mostResponderBytes) {
  throw new Error(
    `dist/lambda/index.mjs has ${responderBytes} bytes, at most ${mostResponderBytes}`,
  );
}

// The board's page, for browsers: the main script, a second one for what is rarely requested, and
// the page and styles around them.
const page = join(out, "board");
/** Descriptions of fields are for kubectl and the reference: a page checks policies without. */
const withoutDescriptions = {
  name: "without-descriptions",
  transform: {
    filter: { id: /src\/config\/schema\// },
    handler: (code: string) =>
      code.replaceAll(/\bdescription:\s*"(?:[^"\\]|\\.)*"/g, 'description: ""'),
  },
};
const pageBuild = await rolldown({
  input: join(root, "src/web/main.tsx"),
  platform: "browser",
  plugins: [withoutDescriptions],
  transform: { target: "es2023" },
});
const pageOutput = await pageBuild.write({
  dir: page,
  format: "esm",
  minify: true,
  // Those that mark pure calls are for bundlers, and this is the last one.
  comments: { annotation: false },
  entryFileNames: "board.js",
  chunkFileNames: "[name].js",
});
await pageBuild.close();
// The board serves them under these names (src/cli/board/start-board.ts).
const pageScripts = pageOutput.output.map(({ fileName }) => fileName).sort();
if (pageScripts.join() !== "board.js,what-if.js") {
  throw new Error(`The page of the board has the scripts ${pageScripts.join(", ")}`);
}
for (const name of ["index.html", "icon.svg"]) {
  cpSync(join(root, "src/web", name), join(page, name));
}
const styles = ["board.css", "demo/demo.css"].map((name) =>
  readFileSync(join(root, "src/web", name), "utf8"),
);
// As the scripts, without comments and indentation; no text in them contains either.
const bareStyles = styles
  .join("\n")
  .replaceAll(/\/\*[\s\S]*?\*\//g, "")
  .replaceAll(/\n\s*/g, "\n");
writeFileSync(join(page, "board.css"), bareStyles);
const pageBytes = readdirSync(page)
  .map((name) => gzipSync(readFileSync(join(page, name)), { level: 9 }).byteLength)
  .reduce((sum, bytes) => sum + bytes, 0);
if (pageBytes > mostPageBytes) {
  throw new Error(`The page of the board is ${pageBytes} bytes packed, at most ${mostPageBytes}`);
}

const chunks = new Map(
  [...output, ...pageOutput.output].flatMap((part) =>
    part.type === "chunk" ? [[part.fileName, part] as const] : [],
  ),
);
const packages = packagesOf(modulesOf([...chunks.keys()]));
writeFileSync(join(out, "THIRD-PARTY-LICENSES.txt"), licenseText(packages));
const responderModules = responderOutput.flatMap((part) =>
  part.type === "chunk" ? part.moduleIds : [],
);
const responderPackages = packagesOf(new Set(responderModules));
writeFileSync(join(out, "lambda/THIRD-PARTY-LICENSES.txt"), licenseText(responderPackages));
const bundled = { lastcall: packages, "lastcall-agent": packagesOf(modulesOf(["agent.js"])) };
// For the bills of materials of a release.
writeFileSync(join(out, "bundled-packages.json"), JSON.stringify(bundled, withoutTexts));

/** The modules in these chunks and in all chunks that they load. */
function modulesOf(files: readonly string[]): ReadonlySet<string> {
  const reached = new Set(files);
  const modules = new Set<string>();
  for (const file of reached) {
    const chunk = chunks.get(file);
    for (const id of chunk?.moduleIds ?? []) modules.add(id);
    for (const next of [...(chunk?.imports ?? []), ...(chunk?.dynamicImports ?? [])]) {
      reached.add(next);
    }
  }
  return modules;
}

function withoutTexts(key: string, value: unknown): unknown {
  return key === "texts" ? undefined : value;
}
