/**
 * The npm packages in the bundle: the texts that their licences require to be passed on, and the
 * entries of a bill of materials.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

export interface BundledPackage {
  readonly name: string;
  readonly version: string;
  /** The SPDX expression of its package.json. */
  readonly license: string;
  /** The texts of its licence and notice files. */
  readonly texts: readonly string[];
}

/**
 * The packages that these modules belong to, sorted by name; a module is an absolute path, as the
 * bundler reports it.
 */
export function packagesOf(moduleIds: Iterable<string>): readonly BundledPackage[] {
  const folders = new Set<string>();
  for (const id of moduleIds) {
    const folder = /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(id.replace(/^\0/, ""))?.[0];
    if (folder !== undefined && existsSync(join(folder, "package.json"))) folders.add(folder);
  }
  return [...folders].map(readPackage).sort((a, b) => (idOf(a) < idOf(b) ? -1 : 1));
}

/** One file with all licences, which ships with the bundle. */
export function licenseText(packages: readonly BundledPackage[]): string {
  const head = "The bundle of Lastcall contains the following packages of npm.\n";
  const parts = packages.map(({ texts, license, ...one }) => {
    const title = `${idOf(one)} (${license})`;
    return [title, "=".repeat(title.length), "", ...texts].join("\n");
  });
  return [head, ...parts].join("\n\n");
}

/** A CycloneDX 1.6 bill of materials, without a time or a random id: same content, same bytes. */
export function cycloneDx(
  subject: { readonly name: string; readonly version: string },
  components: readonly {
    readonly name: string;
    readonly version: string;
    readonly purl: string;
    readonly license?: string;
  }[],
): object {
  return {
    bomFormat: "CycloneDX",
    specVersion: "1.6",
    version: 1,
    metadata: { component: { type: "application", ...subject } },
    components: components.map(({ license, ...one }) => ({
      type: "library",
      "bom-ref": one.purl,
      ...one,
      ...(license !== undefined && { licenses: [{ expression: license }] }),
    })),
  };
}

export function idOf({
  name,
  version,
}: {
  readonly name: string;
  readonly version: string;
}): string {
  return `${name}@${version}`;
}

function readPackage(folder: string): BundledPackage {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  if (typeof license !== "string") {
    throw new Error(
      `Cannot tell the licence of ${name}: expected an SPDX expression in its package.json`,
    );
  }
  const files = readdirSync(folder).filter((file) => /^(licen[cs]e|notice|copying)/i.test(file));
  const texts = files.sort().map((file) => readFileSync(join(folder, file), "utf8").trim());
  if (texts.length === 0) texts.push(`The package ships no text of its licence, ${license}.`);
  return { name, version, license, texts };
}
