import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { plainText } from "../../src/cli/command-line/terminal.ts";
import { demoStartAt, silentLog } from "../../src/cli/demo/demo-run.ts";
import { type LiveDemo, startLiveDemo } from "../../src/cli/demo/live-demo.ts";
import { minutes, plus } from "../../src/core/time/time.ts";
import { eventLoopTurn } from "../../src/runtime/real-clock.ts";
import { VirtualClock } from "../../src/sim/time/virtual-clock.ts";
import { demoScreen } from "../../tools/demo-picture.ts";

const clock = new VirtualClock({ startAt: demoStartAt, settle: eventLoopTurn });
let demo: LiveDemo;

beforeAll(() => {
  demo = startLiveDemo({ clock, seed: 1, nodes: 18, log: silentLog });
  void demo.run(() => {});
});
afterAll(() => demo.close());

function screen(columns: number, rows: number): string {
  const address = "http://127.0.0.1:8087/pXk3v0_Jm8Q2c-Yt/?token=ZzsDNM2jIl_a4Pj8";
  const drawn = { demo, clock, kubeconfig: "/tmp/demo/config", address };
  const lines = demoScreen(drawn, { columns, rows });
  return `${lines.map((line) => plainText(line).trimEnd()).join("\n")}\n`;
}

/**
 * The screens as a user sees them. Each was reviewed by eye; after `vitest -u` rewrites them,
 * review them again.
 */
describe("The demo of seed 1", () => {
  it.each([
    ["start", 1],
    // 42 s into the first notice.
    ["notice", 4.7],
    // Its machine has just gone.
    ["shutdown", 6.6],
    ["departure", 26],
    // Fourteen minutes after the 24 hours of all nodes that were created together.
    ["limit", 308],
  ])("matches its golden files at the moment %s, after %d minutes", async (name, after) => {
    await clock.runUntil(plus(demoStartAt, minutes(after)));
    const folder = "../golden/demo";
    await expect(screen(80, 24)).toMatchFileSnapshot(`${folder}/${name}-80x24.txt`);
    await expect(screen(120, 40)).toMatchFileSnapshot(`${folder}/${name}-120x40.txt`);
  });
});
