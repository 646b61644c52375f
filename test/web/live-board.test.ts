import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { BoardPicture, StreamMessage } from "../../src/board/stream.ts";
import { LiveBoard, type LiveState } from "../../src/web/live-board.ts";

/** A stream that says what the test has it say. */
class ToldSource {
  static last: ToldSource | undefined;
  onmessage: ((event: { readonly data: string }) => void) | undefined;
  onerror: (() => void) | undefined;

  constructor() {
    ToldSource.last = this;
  }

  tell(message: StreamMessage): void {
    this.onmessage?.({ data: JSON.stringify(message) });
  }

  close(): void {}
}

const clock = { at: 0, rate: 1 } as unknown as StreamMessage["clock"];
const picture = { rows: [], past: [], policies: [] } as unknown as BoardPicture;

beforeEach(() => vi.stubGlobal("EventSource", ToldSource));
afterEach(() => vi.unstubAllGlobals());

describe("what a page hears", () => {
  it("is told also to a listener that comes after the picture, and not at the next word", () => {
    const live = new LiveBoard();
    live.connect();
    // A page that is drawn listens only once its first frame has been painted.
    ToldSource.last?.tell({ kind: "Picture", id: "r.1", clock, picture });
    const heard: LiveState[] = [];
    const stop = live.onChange((state) => heard.push(state));
    expect(heard).toEqual([{ connection: "Live", picture }]);
    ToldSource.last?.tell({ kind: "Clock", clock });
    expect(heard).toHaveLength(2);
    stop();
    ToldSource.last?.tell({ kind: "Clock", clock });
    expect(heard).toHaveLength(2);
    live.setShown(false);
  });
});
