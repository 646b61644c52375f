/** Debian packages for any architecture, without installing them. */
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { cacheRoot } from "../go-build.ts";

/** The names that Debian and OCI use. */
export type Architecture = "amd64" | "arm64";

/**
 * Fetches and unpacks the latest version of a Debian package in the archive. apt checks its
 * signature. Its state is kept apart from this machine's own, so that packages of another
 * architecture can be requested.
 */
export function fetchFromDebian(
  name: string,
  architecture: Architecture,
): { readonly root: string; readonly version: string } {
  const home = join(cacheRoot(), `debian-${architecture}`);
  const options = [
    `Dir::State=${home}/state`,
    "Dir::State::status=/dev/null",
    `Dir::Cache=${home}/cache`,
    `APT::Architecture=${architecture}`,
    `APT::Architectures::=${architecture}`,
    "APT::Sandbox::User=root",
  ].flatMap((option) => ["-o", option]);
  const packages = join(home, "packages");
  if (!existsSync(packages)) {
    for (const part of ["state/lists/partial", "cache/archives/partial"]) {
      mkdirSync(join(home, part), { recursive: true });
    }
    execFileSync("apt-get", [...options, "-qq", "update"], {
      stdio: ["ignore", "ignore", "inherit"],
    });
    mkdirSync(packages);
  }
  let file = fileOf(name, packages);
  if (file === undefined) {
    execFileSync("apt-get", [...options, "-qq", "download", name], {
      cwd: packages,
      stdio: "pipe",
    });
    file = fileOf(name, packages);
  }
  if (file === undefined)
    throw new Error(`Cannot fetch ${name}: apt-get left no file in ${packages}`);
  const archive = join(packages, file);
  const unpacked = join(home, "unpacked", file);
  if (!existsSync(unpacked)) {
    mkdirSync(unpacked, { recursive: true });
    execFileSync("dpkg-deb", ["-x", archive, unpacked]);
  }
  const version = execFileSync("dpkg-deb", ["-f", archive, "Version"], { encoding: "utf8" }).trim();
  return { root: unpacked, version };
}

function fileOf(name: string, packages: string): string | undefined {
  return readdirSync(packages).find((file) => file.startsWith(`${name}_`));
}
