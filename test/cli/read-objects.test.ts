import { expect, it } from "vitest";
import type { CommandIo } from "../../src/cli/command-line/command-io.ts";
import { readObjects } from "../../src/cli/input/read-objects.ts";

async function kindsIn(text: string): Promise<readonly unknown[]> {
  const files = { stdin: () => Promise.resolve(text) } as unknown as CommandIo["files"];
  const read = await readObjects(["-"], { files } as CommandIo);
  return read.map(({ object }) => object.kind);
}

it.each([
  ["of no length", ""],
  ["of blank lines", "\n\n"],
  ["of comments", "# nodes\n"],
])(
  "an input %s is refused: a pipe from a kubectl that has failed is no empty fleet",
  async (_, text) => {
    await expect(kindsIn(text)).rejects.toThrow(
      "Cannot read standard input:1: found nothing, expected the output of kubectl get -o json",
    );
  },
);

it("a text is named that is no object", async () => {
  await expect(kindsIn("No resources found")).rejects.toThrow(
    'Cannot read standard input:1: found the text "No resources found", expected a Kubernetes object',
  );
});

it("a folder without manifests is refused: it is no empty fleet", async () => {
  const files = { list: () => Promise.resolve(["notes.txt"]) } as unknown as CommandIo["files"];
  await expect(readObjects(["fleet"], { files } as CommandIo)).rejects.toThrow(
    "Cannot read fleet: found no .json, .yaml or .yml file, expected the output of kubectl get",
  );
});

it("an empty list is a fleet of nobody", async () => {
  expect(await kindsIn('{"apiVersion": "v1", "kind": "List", "items": []}')).toEqual([]);
});

it("an empty list of one kind says that there is none of it", async () => {
  const text = '{"apiVersion": "apps/v1", "kind": "DaemonSetList", "items": []}';
  expect(await kindsIn(text)).toEqual(["DaemonSetList"]);
});
