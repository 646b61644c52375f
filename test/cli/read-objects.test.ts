import { expect, it } from "vitest";
import { readObjects } from "../../src/cli/input/read-objects.ts";
import { tableOfFiles } from "../audit/support/audit-yaml.ts";

async function kindsIn(text: string): Promise<readonly unknown[]> {
  const read = await readObjects(["-"], tableOfFiles({ "-": text }));
  return read.map(({ object }) => object.kind);
}

it.each([
  ["without content", ""],
  ["of blank lines", "\n\n"],
  ["of comments", "# nodes\n"],
])(
  "an input %s is rejected: it comes from a kubectl that failed, not from an empty fleet",
  async (_, text) => {
    await expect(kindsIn(text)).rejects.toThrow(
      "Cannot read standard input:1: found nothing, expected the output of kubectl get -o json",
    );
  },
);

it("text that is not an object is rejected and quoted", async () => {
  await expect(kindsIn("No resources found")).rejects.toThrow(
    'Cannot read standard input:1: it is the text "No resources found", expected a Kubernetes object',
  );
});

it("a folder without manifests is rejected, not read as an empty fleet", async () => {
  await expect(readObjects(["fleet"], tableOfFiles({ "fleet/notes.txt": "x" }))).rejects.toThrow(
    "Cannot read fleet: found no .json, .yaml or .yml file, expected the output of kubectl get",
  );
});

it("an empty list is an empty fleet", async () => {
  expect(await kindsIn('{"apiVersion": "v1", "kind": "List", "items": []}')).toEqual([]);
});

it("an empty list of one kind is kept, since it shows that there is none", async () => {
  const text = '{"apiVersion": "apps/v1", "kind": "DaemonSetList", "items": []}';
  expect(await kindsIn(text)).toEqual(["DaemonSetList"]);
});

it("a folder is read with its subfolders, as by the audit", async () => {
  const node = (name: string) => `{"kind": "Node", "metadata": {"name": "${name}"}}`;
  const files = tableOfFiles({
    "fleet/nodes.json": `${node("a")}\n${node("b")}`,
    "fleet/more/c.YAML": "apiVersion: v1\nkind: Node\nmetadata: {name: c}\n",
    "fleet/.git/d.json": "{",
    "fleet/notes.md": "{",
  });

  const read = await readObjects(["fleet"], files);
  expect(read.map(({ file, object }) => `${file} ${object.metadata?.name}`)).toEqual([
    "fleet/more/c.YAML c",
    "fleet/nodes.json a",
    "fleet/nodes.json b",
  ]);
});

it.each([
  ["in a list of numbers", "[1, 2, 3]", ":1: it is a list, expected a Kubernetes object"],
  ["that is truncated", "{", ", expected YAML"],
  ["without a kind", '{"metadata": {"name": "a"}}', "found no kind, expected the output"],
  ["that is a NodeList without items", '{"kind": "NodeList"}', "a NodeList without items"],
  ["with a duplicate YAML key", "kind: Node\nkind: Pod\n", ":2: the key kind appears twice"],
])("an object %s is rejected", async (_, text, says) => {
  await expect(kindsIn(text)).rejects.toThrow(says);
  await expect(kindsIn(text)).rejects.toMatchObject({ code: "INPUT_INVALID" });
});

it("a file that does not exist is INPUT_UNREADABLE", async () => {
  await expect(readObjects(["lost.json"], tableOfFiles({}))).rejects.toMatchObject({
    code: "INPUT_UNREADABLE",
    message: "Cannot read lost.json: it does not exist, expected a readable file",
  });
});
