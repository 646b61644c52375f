import { spawnSync } from "node:child_process";
import { expect, it } from "vitest";

/** Loads the controller and the runners of `kinds`; returns the modules that were loaded. */
function loadedFor(...kinds: readonly string[]): readonly string[] {
  const program = `
    import { registerHooks } from "node:module";
    const loaded = [];
    registerHooks({ load: (url, context, next) => (loaded.push(url), next(url, context)) });
    await import("./src/cli/assemble/assemble-controller.ts");
    const { actionPorts } = await import("./src/cli/assemble/controller-ports.ts");
    const tools = { machines: () => [], env: {}, allowed: [], namespace: "lastcall" };
    const { runners } = actionPorts({ ...tools, onError: () => {} });
    for (const kind of ${JSON.stringify(kinds)}) await runners(kind);
    console.log(JSON.stringify(loaded));
    process.exit(0);`;
  const args = ["--input-type=module", "--eval", program];
  const { stdout, stderr } = spawnSync(process.execPath, args, { encoding: "utf8" });
  expect(stderr).not.toContain("Error");
  const found = (JSON.parse(stdout) as readonly string[]).flatMap(
    (url) =>
      /@aws-sdk\/client-[^/]+|src\/(actions|cloud\/aws\/actions)\/[^/]+$/.exec(url)?.[0] ?? [],
  );
  return [...new Set(found)].toSorted();
}

it("a controller whose policies have no actions loads no code for actions", () => {
  expect(loadedFor()).toEqual([]);
}, 60_000);

it("a controller with SNS actions loads only the SNS client and nothing of src/actions", () => {
  const loaded = loadedFor("sns");
  expect(loaded.filter((name) => name.startsWith("@aws-sdk"))).toEqual(["@aws-sdk/client-sns"]);
  expect(loaded.filter((name) => name.startsWith("src/actions"))).toEqual([]);
}, 60_000);
