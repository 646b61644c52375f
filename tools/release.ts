/**
 * Builds everything that a release publishes into `out/`: the npm package, both images as OCI
 * layouts for two architectures, the chart, bills of materials and checksums. Needs neither a
 * container engine nor a base image; the same checkout gives the same bytes. `--push HOST/PATH`
 * pushes images and chart to a registry; without it nothing leaves this machine.
 */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { buildHelm } from "../test/controlplane/build.ts";
import { type BundledPackage, cycloneDx, idOf } from "./release/bundled-packages.ts";
import type { Architecture } from "./release/debian-package.ts";
import { buildCrane } from "./release/go-tools.ts";
import {
  type ImageConfig,
  packLayer,
  pullLayout,
  pushImage,
  pushIndex,
  pushLayout,
  startRegistry,
} from "./release/oci-image.ts";
import { type ImageName, type ImagePackage, layOut } from "./release/root-file-system.ts";
import { root } from "./source-tree.ts";

const out = join(root, "out");
const architectures: readonly Architecture[] = ["amd64", "arm64"];
const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));

const entryPoints: Readonly<Record<ImageName, Omit<ImageConfig, "labels">>> = {
  lastcall: {
    entrypoint: ["/usr/bin/node", "/app/bin/lastcall.js"],
    env: { NODE_ENV: "production" },
  },
  "lastcall-agent": {
    entrypoint: ["/bun", "/app/agent.js"],
    // Saves 6 MiB; the code runs for only some milliseconds per minute.
    env: { BUN_JSC_useJIT: "0" },
  },
};

/** What `tools/bundle.ts` found in the bundle of each image. */
type Bundled = Readonly<Record<ImageName, readonly BundledPackage[]>>;

const usage = `Usage: npm run release -- [--dry-run] [--push HOST/PATH]

  --dry-run          make everything in out/, publish nothing (the default)
  --push HOST/PATH   also push images and chart there, as in --push ghcr.io/example
`;

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      "dry-run": { type: "boolean", default: false },
      push: { type: "string" },
      help: { type: "boolean", short: "h", default: false },
    },
  });
  if (values.help) return void process.stdout.write(usage);
  const target = values.push;
  if (values["dry-run"] && target !== undefined) {
    throw new Error("Cannot both try and push: --dry-run and --push exclude each other");
  }
  assertTools();
  rmSync(out, { recursive: true, force: true });
  mkdirSync(out);
  say("package for npm");
  execFileSync("npm", ["pack", "--silent", "--pack-destination", out], { cwd: root });
  const bundled: Bundled = JSON.parse(
    readFileSync(join(root, "dist/bundled-packages.json"), "utf8"),
  );
  writeBill("npm", bundled.lastcall.map(asComponent));
  await makeImages(target, bundled);
  makeChart(target);
  writeChecksums();
  say(`done: ${out}`);
}

/** Every tool is part of Debian or comes with Node or Go. */
function assertTools(): void {
  const needed = {
    "apt-get": "Debian's own",
    "dpkg-deb": "Debian's own",
    "x86_64-linux-gnu-strip": "apt-get install binutils-x86-64-linux-gnu",
    "aarch64-linux-gnu-strip": "apt-get install binutils-aarch64-linux-gnu",
    go: "from go.dev",
  };
  for (const [tool, remedy] of Object.entries(needed)) {
    try {
      execFileSync("which", [tool], { stdio: "ignore" });
    } catch {
      throw new Error(`Cannot make a release: ${tool} is not on the PATH; ${remedy}`);
    }
  }
}

async function makeImages(target: string | undefined, bundled: Bundled): Promise<void> {
  const crane = buildCrane();
  const registry = await startRegistry(crane);
  try {
    for (const image of Object.keys(entryPoints) as ImageName[]) {
      const tag = `${registry.address}/${image}:${version}`;
      const images = architectures.map((architecture) => {
        say(`image ${image} for ${architecture}`);
        const repository = `${registry.address}/${image}`;
        const { layer, packages } = makeLayer(image, architecture);
        writeBill(`${image}-${architecture}`, [...packages, ...bundled[image].map(asComponent)]);
        const config = { ...entryPoints[image], labels: labelsOf(image) };
        return pushImage(crane, { repository, architecture, layer, config });
      });
      const digest = pushIndex(crane, tag, images);
      const layout = join(out, "images", image);
      pullLayout(crane, tag, layout);
      say(`image ${image}:${version} is ${digest}`);
      if (target === undefined) continue;
      say(`pushed as ${pushLayout(crane, layout, `${target}/${image}:${version}`)}`);
    }
  } finally {
    registry.stop();
    rmSync(join(out, "work"), { recursive: true, force: true });
  }
}

function makeLayer(
  image: ImageName,
  architecture: Architecture,
): { readonly layer: string; readonly packages: readonly ImagePackage[] } {
  const work = join(out, "work", `${image}-${architecture}`);
  const packages = layOut(image, { architecture, target: work });
  const layer = `${work}.tar`;
  packLayer(work, layer);
  return { layer, packages };
}

function labelsOf(image: ImageName): Readonly<Record<string, string>> {
  return {
    "org.opencontainers.image.title": image,
    "org.opencontainers.image.version": version,
    "org.opencontainers.image.licenses": "Apache-2.0",
  };
}

/** The chart as Helm packs it, but with fixed times; Helm lints it first. */
function makeChart(target: string | undefined): void {
  const helm = buildHelm();
  const chart = join(root, "deploy/chart");
  execFileSync(helm, ["lint", "--strict", chart], { stdio: ["ignore", "ignore", "inherit"] });
  const packed = join(out, `lastcall-chart-${version}.tgz`);
  const fixed = ["--sort=name", "--mtime=@0", "--owner=0", "--group=0", "--numeric-owner"];
  const rename = ["--transform", "s,^\\.,lastcall,"];
  const tar = execFileSync("tar", [...fixed, ...rename, "-cf", "-", "-C", chart, "."]);
  writeFileSync(packed, execFileSync("gzip", ["-n", "-9"], { input: tar }));
  say(`chart ${packed}`);
  if (target === undefined) return;
  const plain = /^(127\.0\.0\.1|localhost)[:/]/.test(target) ? ["--plain-http"] : [];
  execFileSync(helm, ["push", packed, `oci://${target}/charts`, ...plain], { stdio: "inherit" });
}

function asComponent({
  name,
  version,
  license,
}: BundledPackage): ImagePackage & { license: string } {
  return {
    name,
    version,
    license,
    purl: `pkg:npm/${idOf({ name: name.replace("@", "%40"), version })}`,
  };
}

function writeBill(of: string, components: Parameters<typeof cycloneDx>[1]): void {
  const bill = cycloneDx({ name: of === "npm" ? "lastcall" : of, version }, components);
  writeFileSync(join(out, `${of}.cdx.json`), `${JSON.stringify(bill, null, 2)}\n`);
}

/**
 * In the format of `sha256sum -c`. For an image, the index is enough: its digests cover the rest.
 */
function writeChecksums(): void {
  const files = readdirSync(out).filter((name) => /\.(tgz|json)$/.test(name));
  const indexes = Object.keys(entryPoints).map((image) => `images/${image}/index.json`);
  const lines = [...files, ...indexes].sort().map((file) => {
    const digest = createHash("sha256")
      .update(readFileSync(join(out, file)))
      .digest("hex");
    return `${digest}  ${file}\n`;
  });
  writeFileSync(join(out, "SHA256SUMS"), lines.join(""));
}

function say(line: string): void {
  process.stderr.write(`release: ${line}\n`);
}

try {
  await main();
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}
