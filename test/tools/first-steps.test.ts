import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";

const root = join(import.meta.dirname, "../..");
const pageOf = (path: string) => readFileSync(join(root, path), "utf8");
const blocksOf = (page: string) =>
  [...page.matchAll(/```[a-z]*\n([\s\S]*?)```/g)].map(([all]) => all);

/** kubectl warns of each definition that it did not create, and finds nothing wrong with it. */
it.each(["README.md", "README.ja.md", "docs/getting-started.md", "docs/ja/getting-started.md"])(
  "the commands of %s install the definitions in one way",
  (path) => {
    const commands = blocksOf(pageOf(path)).join("\n");
    const ways = [/setup crds --apply/, /kubectl apply -k/].filter((way) => way.test(commands));
    expect(ways).toHaveLength(1);
  },
);

it.each([
  ["docs/getting-started.md", "The controller needs a node that stays", "To uninstall"],
  [
    "docs/ja/getting-started.md",
    "コントローラーには、中断されないノードが必要です",
    "アンインストール",
  ],
])(
  "%s says where the controller runs, and how to uninstall, policies first",
  (path, node, last) => {
    const page = pageOf(path);
    expect(page).toContain(`**${node}`);
    const steps = page.slice(page.indexOf(last));
    const order = [
      "running.md#uninstall",
      "helm uninstall lastcall",
      "kubectl delete -k deploy/crds",
    ];
    const places = order.map((step) => steps.indexOf(step));
    expect(places.every((place) => place > 0)).toBe(true);
    expect(places.toSorted((a, b) => a - b)).toEqual(places);
  },
);
