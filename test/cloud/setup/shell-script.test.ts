import { spawnSync } from "node:child_process";
import fc from "fast-check";
import { expect, it } from "vitest";
import { shellQuoted } from "../../../src/cloud/setup/shell-script.ts";

it("shellQuoted passes any text through the shell unchanged", () => {
  fc.assert(
    fc.property(fc.array(fc.string({ minLength: 1 }), { minLength: 1, maxLength: 40 }), (given) => {
      const texts = given.map((one) => one.replaceAll("\u0000", ""));
      const script = `printf '%s\\0' ${texts.map(shellQuoted).join(" ")}`;
      const { stdout } = spawnSync("bash", ["-c", script], { encoding: "utf8" });
      expect(stdout.split("\u0000").slice(0, -1)).toEqual(texts);
    }),
    { seed: 3, numRuns: 25 },
  );
});
