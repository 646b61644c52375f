import { expect, it } from "vitest";
import { modelCli } from "../support/model-cli.ts";
import { ModelWorld, spotPolicy } from "../support/model-world.ts";

it("lastcall plan begins with the headline that the board shows", async () => {
  const world = new ModelWorld();
  for (const name of ["n1", "n2"]) world.addNode(name, "a");
  spotPolicy(world, { lifetime: { max: "24h" }, spacing: { mode: "Late", min: "15m" } });
  const cli = await modelCli(world);
  try {
    expect((await cli.run(["hold", "n2"])).exit).toBe(0);
    const { stdout } = await cli.run(["plan"]);
    const [policy, next, ...rest] = stdout.split("\n");
    expect(policy).toBe("Policy spot: 2 nodes. The departure is on schedule.");
    expect(next).toMatch(/^Next: n1 leaves at 2026-11-20 23:30:0\d UTC \(in 23h\d\dm\)\.$/);
    const wide = await cli.run(["plan", "-o", "wide"]);
    expect(wide.stdout).toMatch(/^Next: n1 leaves at 2026-11-20T23:30:0\d\.\d{3}Z\.$/m);
    const lines = rest.slice(0, rest.indexOf(""));
    expect(lines.map((line) => line.split(":")[0])).toEqual([
      ...["Leaving", "Held", "Controller", "Agents"],
    ]);
    expect(lines[0]).toBe("Leaving: No node is leaving now.");
    expect(lines[1]).toMatch(/^Held: 1 node is on hold.* \(n2\)\.$/);
    expect(lines[2]).toMatch(/^Controller: Nobody holds the Lease/);
    expect(lines[3]).toBe("Agents: There is no agent.");
  } finally {
    await cli.close();
  }
});
