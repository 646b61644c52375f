import { beforeEach, describe, expect, it } from "vitest";
import type { PictureListener } from "../../src/board/board-feed.ts";
import { type BoardPicture, noRights } from "../../src/board/stream.ts";
import { showTerminalBoard } from "../../src/cli/board/show-terminal-board.ts";
import type { Screen } from "../../src/cli/command-line/command.ts";
import { instant, seconds } from "../../src/core/time/time.ts";
import { ManualClock, settle } from "../support/manual-clock.ts";

const startAt = Date.UTC(2026, 10, 20);
const none = { bornAt: null, departAt: null, deadlineAt: null, heldBackTo: null, noticedAt: null };
const rowOf = (node: string) =>
  ({
    ...{ id: node, node, state: "Stays", reason: "NoPolicy", hold: null, pods: null, explain: "" },
    ...none,
  }) as never;
const picture: BoardPicture = {
  fleet: {
    ...{ cluster: "prod", isDemo: false, connection: { kind: "Live" }, missing: [] },
    ...{ rights: noRights, days: [], headline: [], isCounted: false },
  },
  ...{ rows: [rowOf("n1")], past: [], policies: [] },
};
const told = { at: instant(startAt), rate: 1 };

class World {
  readonly clock = new ManualClock(startAt);
  readonly stopping = new AbortController();
  readonly frames: string[] = [];
  tell: PictureListener = () => {};
  press: (key: string) => void = () => {};
  open = { feed: false, keyboard: false, screen: true };
  resize = (): void => {};
  size = { columns: 80, rows: 24 };

  start(): Promise<void> {
    const screen: Screen = {
      size: () => this.size,
      draw: (frame) => void this.frames.push(frame),
      onResize: (listener) => {
        this.resize = listener;
        return () => {};
      },
      close: () => void Object.assign(this.open, { screen: false }),
    };
    const feed = {
      subscribe: (listener: PictureListener) => {
        this.tell = listener;
        this.open.feed = true;
        listener({ kind: "Picture", id: "a.0", clock: told, picture });
        return () => void Object.assign(this.open, { feed: false });
      },
    };
    const openKeyboard = (onText: (text: string) => void) => {
      this.press = onText;
      this.open.keyboard = true;
      return { close: () => void Object.assign(this.open, { keyboard: false }) };
    };
    const io = { clock: this.clock, colour: false };
    return showTerminalBoard({ feed, screen, io, openKeyboard }, this.stopping.signal);
  }

  last(): string {
    return this.frames.at(-1) ?? "";
  }
}

let world: World;
beforeEach(() => {
  world = new World();
});

describe("The board on a terminal", () => {
  it("shows the picture, each change to it, and each second that passes", async () => {
    const shown = world.start();
    await settle();
    expect(world.last()).toContain("00:00:00 UTC   1 node of prod");
    const change = { rows: { set: [rowOf("n2")], gone: [] } };
    world.tell({ kind: "Change", id: "a.1", after: "a.0", clock: told, change });
    expect(world.last()).toContain("2 nodes of prod");
    await world.clock.advance(seconds(1));
    expect(world.last()).toContain("00:00:01 UTC");
    world.stopping.abort();
    await shown;
  });

  it.each([
    ["q", (one: World) => one.press("q")],
    ["an interrupt", (one: World) => one.stopping.abort()],
  ])("closes feed, keyboard and screen on %s", async (_, end) => {
    const shown = world.start();
    await settle();
    end(world);
    await shown;
    expect(world.open).toEqual({ feed: false, keyboard: false, screen: false });
    const frames = world.frames.length;
    world.press("s");
    expect(world.frames).toHaveLength(frames);
  });

  /** Presses each key, and compares the selected row after it. */
  async function walk(steps: readonly (readonly [string, string])[]): Promise<void> {
    const rows = Array.from({ length: 40 }, (_, index) => rowOf(`n${10 + index}`));
    const shown = world.start();
    world.tell({ kind: "Picture", id: "a.1", clock: told, picture: { ...picture, rows } });
    const selected = (): string => /^>(n\d\d) /m.exec(world.last())?.[1] ?? "";
    for (const [key, expected] of steps) {
      world.press(key);
      expect([key, selected()]).toEqual([key, expected]);
    }
    world.stopping.abort();
    await shown;
  }

  it("moves by its keys, never past either end, and sorts from the top", async () => {
    const page = 19;
    await walk([
      ["\u001b[A", "n10"],
      ["\u001b[B", "n11"],
      ["j", "n12"],
      ["\u001b[6~", `n${12 + page}`],
      ["\u001b[F", "n49"],
      ["\u001b[B", "n49"],
      ["\u001b[5~", `n${49 - page}`],
      ["k", `n${48 - page}`],
      ["g", "n10"],
      ["j", "n11"],
      ["s", "n10"],
    ]);
  });

  it("filters at /, as it is typed, until Esc", async () => {
    await walk([
      ["j", "n11"],
      ["/", "n10"],
      ["4", "n14"],
      ["7", "n47"],
      ["q", ""],
      ["\u007f", "n47"],
      ["\r", "n47"],
      ["\u001b", "n47"],
      ["g", "n10"],
      ["/", "n10"],
      ["4", "n14"],
      ["\u001b", "n10"],
    ]);
  });

  it("describes the selected node at Enter, wherever the list moves, and goes back at Esc", async () => {
    const shown = world.start();
    const rows = [rowOf("n1"), rowOf("n2"), rowOf("n3")];
    world.tell({ kind: "Picture", id: "a.1", clock: told, picture: { ...picture, rows } });
    world.press("j");
    world.press("\r");
    expect(world.last()).toContain("n2\u001b[K\r\n\u001b[K\r\n Reason");
    world.tell({
      ...{ kind: "Change", id: "a.2", after: "a.1", clock: told },
      change: { rows: { set: [rowOf("n0")], gone: ["n1"] } },
    });
    expect(world.last()).toContain("n2\u001b[K\r\n\u001b[K\r\n Reason");
    world.press("\u001b");
    expect(world.last()).toMatch(/^>n2 /m);
    world.stopping.abort();
    await shown;
  });

  it("describes nothing at Enter if nothing is listed", async () => {
    await walk([
      ["/", "n10"],
      ["x", ""],
      ["\r", ""],
      ["\r", ""],
      ["\u001b", "n10"],
    ]);
  });

  it("stays at the top while nobody has moved, and with a selected row wherever that goes", async () => {
    const moved = (id: string) => ({
      rows: { set: [{ ...(rowOf("n9") as object), id } as never], gone: [] },
    });
    const rows = Array.from({ length: 5 }, (_, index) => rowOf(`n${index + 1}`));
    const shown = world.start();
    world.tell({ kind: "Picture", id: "a.1", clock: told, picture: { ...picture, rows } });
    expect(world.last()).toMatch(/^>n1 /m);
    world.tell({ kind: "Change", id: "a.2", after: "a.1", clock: told, change: moved("n1") });
    expect(world.last()).toMatch(/^>n2 /m);
    world.press("j");
    expect(world.last()).toMatch(/^>n3 /m);
    world.tell({ kind: "Change", id: "a.3", after: "a.2", clock: told, change: moved("n3") });
    expect(world.last()).toMatch(/^>n9 /m);
    world.stopping.abort();
    await shown;
  });

  it("redraws on a resize", async () => {
    const shown = world.start();
    await settle();
    world.size = { columns: 20, rows: 4 };
    world.resize();
    expect(world.last().split("\r\n")).toHaveLength(4);
    world.stopping.abort();
    await shown;
  });
});
