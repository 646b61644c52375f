import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { commandList } from "../../src/cli/command-line/command-list.ts";
import { clusterEvents, metricNames } from "../../src/contracts/telemetry.ts";
import { root } from "../../tools/source-tree.ts";

const page = readFileSync(join(root, "docs/migrate.md"), "utf8");
const section = /### Where to look now\n([\s\S]*?)\n###? /.exec(page)?.[1] ?? "";
const [, , ...rows] = section
  .split("\n")
  .filter((line) => line.startsWith("|"))
  .map((line) => line.split(" | ").map((cell) => cell.replace(/^\| | \|$/g, "")));
const now = rows.map((row) => row[2] ?? "").join("\n");
const named = (pattern: RegExp) => [...now.matchAll(pattern)].map((match) => match[1] ?? "");

const crd = parse(readFileSync(join(root, "deploy/crds/departures.lastcall.dev.yaml"), "utf8"));
const columns = crd.spec.versions[0].additionalPrinterColumns.map(
  ({ name }: { readonly name: string }) => name.toUpperCase(),
);

/** The lines, the marks and the metric of the killer, each of which a user may have watched. */
const watched = [
  /preemptible nodes/,
  /minute\(s\) to go before kill/,
  /pod\(s\) found/,
  /Draining node timeout reached/,
  /`Node deleted`/,
  /Error deleting GCloud instance/,
  /annotation `estafette.io\/gke-preemptible-killer-state`/,
  /label `cloud.google.com\/gke-preemptible=true`/,
  /estafette_gke_preemptible_killer_node_totals/,
];

describe("the page's table of where to look after the killer", () => {
  it("has a row for each thing that the killer shows, with a place for each", () => {
    for (const one of watched) {
      expect(rows.filter(([before = ""]) => one.test(before))).toHaveLength(1);
    }
    expect(rows.filter((row) => row.length !== 3 || row.includes(""))).toEqual([]);
  });

  it.each([
    ["metrics", /`(lastcall_\w+)/g, Object.values(metricNames).flat()],
    ["Events", /`([A-Z][a-z]+(?:[A-Z][a-z]+)+)`/g, Object.keys(clusterEvents)],
    ["columns", /\(`([A-Z]+)`\)/g, columns],
    ["commands", /`lastcall ([a-z-]+)/g, commandList.map(({ name }) => name)],
  ])("names only %s that exist", (_, pattern, known) => {
    const found = named(pattern);
    expect(found).not.toEqual([]);
    expect(known).toEqual(expect.arrayContaining(found));
  });
});
