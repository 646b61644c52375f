import { expect, it } from "vitest";
import type { DemoPicture } from "../../src/board/demo-picture.ts";
import { demoStartAt, silentLog } from "../../src/cli/demo/demo-run.ts";
import { DemoStage, Director } from "../../src/cli/demo/demo-stage.ts";
import { type LiveDemo, startLiveDemo } from "../../src/cli/demo/live-demo.ts";
import type { PageStream } from "../../src/contracts/http-route.ts";
import { minutes, plus } from "../../src/core/time/time.ts";
import { eventLoopTurn } from "../../src/runtime/real-clock.ts";
import { VirtualClock } from "../../src/sim/time/virtual-clock.ts";
import { ManualClock } from "../support/manual-clock.ts";

const query = new URLSearchParams();

async function withStage(
  nodes: number,
  check: (stage: DemoStage, parts: { demo: LiveDemo; clock: VirtualClock }) => Promise<void>,
): Promise<void> {
  const clock = new VirtualClock({ startAt: demoStartAt, settle: eventLoopTurn });
  const demo = startLiveDemo({ clock, seed: 1, nodes, log: silentLog });
  void demo.run(() => {});
  const director = new Director({ demo, speed: 60, isPaced: true });
  try {
    await check(new DemoStage(director, new ManualClock()), { demo, clock });
  } finally {
    await demo.close();
  }
}

function listen(stage: DemoStage): {
  readonly pictures: DemoPicture[];
  readonly leave: () => void;
} {
  const pictures: DemoPicture[] = [];
  const stream = stage
    .routes()
    .get["/api/demo"]?.({ query, lastEventId: undefined, body: undefined });
  const send = (parts: Iterable<string>): void => {
    pictures.push(JSON.parse([...parts].join("").slice("data: ".length)));
  };
  return { pictures, leave: (stream as PageStream).open({ send }) };
}

function press(stage: DemoStage, body: unknown) {
  return stage.routes().post["/api/demo/key"]?.({ query, lastEventId: undefined, body });
}

it("The stage sends both fleets to a new page at once, and to open pages at each key", async () => {
  await withStage(6, async (stage, { clock }) => {
    await clock.runUntil(plus(demoStartAt, minutes(1)));
    const { pictures, leave } = listen(stage);
    expect(pictures.at(-1)).toMatchObject({
      paused: false,
      speed: 60,
      story: { kind: "Together" },
    });
    expect(pictures.at(-1)?.nodes.map(({ twin }) => twin?.doing)).toEqual(Array(6).fill("Working"));
    expect(await press(stage, { key: "Pause" })).toMatchObject({ status: 200 });
    expect(pictures.at(-1)).toMatchObject({ paused: true, speed: 0 });
    leave();
    await press(stage, { key: "Pause" });
    expect(pictures).toHaveLength(2);
  });
});

it("No node leaves while the page of one is open, and the pause ends with the page", async () => {
  await withStage(6, async (stage) => {
    const { pictures } = listen(stage);
    await press(stage, { key: "Read" });
    expect(pictures.at(-1)).toMatchObject({ paused: true, isReading: true, speed: 0 });
    await press(stage, { key: "ReadOn" });
    expect(pictures.at(-1)).toMatchObject({ paused: false, isReading: false, speed: 60 });
  });
});

it("The page's Interrupt key hits both fleets, at the pace of a first notice", async () => {
  await withStage(6, async (stage, { clock }) => {
    // The demo's own notice is over.
    await clock.runUntil(plus(demoStartAt, minutes(8)));
    const { pictures } = listen(stage);
    await press(stage, { key: "Interrupt" });
    expect(pictures.at(-1)).toMatchObject({ moment: "Notice", speed: 15 });
    const { node, twinPods } = pictures.at(-1)?.notice ?? {};
    const taken = pictures.at(-1)?.nodes.find(({ name }) => name === node);
    expect(taken).toMatchObject({ doing: "Taken", twin: { doing: "Taken" } });
    expect(twinPods?.length).toBeGreaterThan(0);
  });
});

it.each([[{ key: "Quit" }], [{ key: "Sort" }], [{}], [null], ["Pause"]])(
  "The key %j from the page is rejected",
  async (body) => {
    await withStage(1, async (stage) => {
      expect(await press(stage, body)).toMatchObject({ status: 400 });
    });
  },
);

it("The stage shows the first 120 nodes of a large fleet, and counts the others", async () => {
  await withStage(130, async (stage) => {
    const [picture] = listen(stage).pictures;
    expect(picture?.nodes).toHaveLength(120);
    expect(picture?.unseen).toBe(10);
  });
});
