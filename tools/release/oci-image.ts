/**
 * Images as OCI layouts. crane of go-containerregistry creates the layers and manifests; since it
 * edits images only in a registry, a temporary one runs on loopback.
 */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, rmSync, utimesSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Architecture } from "./debian-package.ts";

export interface ImageConfig {
  readonly entrypoint: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly labels: Readonly<Record<string, string>>;
}

export interface Registry {
  /** `127.0.0.1:PORT`. */
  readonly address: string;
  readonly stop: () => void;
}

/** Starts a registry in memory, on a free loopback port. */
export async function startRegistry(crane: string): Promise<Registry> {
  const child = spawn(crane, ["registry", "serve", "--address", "127.0.0.1:0"], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  for await (const line of createInterface({ input: child.stderr })) {
    const port = /serving on port (\d+)/.exec(line)?.[1];
    if (port === undefined) continue;
    return { address: `127.0.0.1:${port}`, stop: () => child.kill() };
  }
  await once(child, "exit");
  throw new Error(`Cannot start a registry: ${crane} registry serve ended before it served`);
}

/**
 * Packs a folder into one layer. Owner, order and times are fixed, so that the same content gives
 * the same bytes, whoever builds it and when.
 */
export function packLayer(folder: string, file: string): void {
  const fixed = ["--sort=name", "--mtime=@0", "--owner=0", "--group=0", "--numeric-owner"];
  execFileSync("tar", [...fixed, "--format=gnu", "-cf", file, "-C", folder, "."]);
  utimesSync(file, 0, 0);
}

/** Pushes an image with one layer for one architecture, and returns its reference by digest. */
export function pushImage(
  crane: string,
  about: {
    readonly repository: string;
    readonly architecture: Architecture;
    readonly layer: string;
    readonly config: ImageConfig;
  },
): string {
  const { repository, architecture, layer, config } = about;
  const tag = `${repository}:${architecture}`;
  const platform = `linux/${architecture}`;
  run(crane, "append", "--oci-empty-base", "--platform", platform, "-f", layer, "-t", tag);
  run(
    crane,
    ...["mutate", tag, "-t", tag, "--set-platform", platform, "--user", "65532:65532"],
    ...["--entrypoint", config.entrypoint.join(",")],
    ...Object.entries(config.env).flatMap(([name, value]) => ["--env", `${name}=${value}`]),
    ...Object.entries(config.labels).flatMap(([name, value]) => ["--label", `${name}=${value}`]),
  );
  return `${repository}@${run(crane, "digest", tag)}`;
}

/** Pushes one tag for the images of all architectures, and returns its digest. */
export function pushIndex(crane: string, tag: string, images: readonly string[]): string {
  run(crane, "index", "append", "-t", tag, ...images.flatMap((image) => ["-m", image]));
  return run(crane, "digest", tag);
}

/** Writes an image from a registry, with all its architectures, into a folder as an OCI layout. */
export function pullLayout(crane: string, reference: string, folder: string): void {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(join(folder, ".."), { recursive: true });
  run(crane, "pull", "--format=oci", reference, folder);
}

/** Pushes a layout to a registry, and returns its digest there. */
export function pushLayout(crane: string, folder: string, reference: string): string {
  run(crane, "push", folder, reference);
  return run(crane, "digest", reference);
}

function run(crane: string, ...args: readonly string[]): string {
  return execFileSync(crane, args, { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] }).trim();
}
