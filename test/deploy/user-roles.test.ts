import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { parseAllDocuments } from "yaml";

interface Role {
  readonly metadata: { readonly name: string; readonly labels?: Readonly<Record<string, string>> };
  readonly rules: readonly { readonly verbs: readonly string[] }[];
}

const text = readFileSync(join(import.meta.dirname, "../../deploy/base/users.yaml"), "utf8");
const roles = parseAllDocuments(text).map((one) => one.toJS() as Role);
const reads = new Set(["get", "list", "watch"]);

it("what every viewer gets can only read, and what can write is bound by hand", () => {
  const said = roles.map(({ metadata: { name, labels = {} }, rules }) => [
    name,
    Object.keys(labels),
    rules.flatMap(({ verbs }) => verbs).every((verb) => reads.has(verb)),
  ]);
  expect(said).toEqual([
    ["lastcall-view", ["rbac.authorization.k8s.io/aggregate-to-view"], true],
    ["lastcall-edit", [], false],
  ]);
});
