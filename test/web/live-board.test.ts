import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { BoardChange, BoardPicture, StreamMessage } from "../../src/board/stream.ts";
import { LiveBoard, type LiveState } from "../../src/web/view-state.ts";

/** A stream on which a test sends messages. */
class ToldSource {
  static last: ToldSource | undefined;
  static readonly asked: string[] = [];
  onmessage: ((event: { readonly data: string }) => void) | undefined;
  onerror: (() => void) | undefined;

  constructor(path: string) {
    ToldSource.last = this;
    ToldSource.asked.push(path);
  }

  tell(message: StreamMessage): void {
    this.onmessage?.({ data: JSON.stringify(message) });
  }

  close(): void {}
}

type Rows = NonNullable<BoardChange["rows"]>;
const clock = { at: 0, rate: 1 } as unknown as StreamMessage["clock"];
const picture = { rows: [], past: [], policies: [] } as unknown as BoardPicture;

beforeEach(() => vi.stubGlobal("EventSource", ToldSource));
afterEach(() => vi.unstubAllGlobals());

describe("LiveBoard", () => {
  it("calls a listener that was added after the picture at once", () => {
    const live = new LiveBoard();
    live.connect();
    // A page listens only once its first frame has been painted.
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

  it("continues from the last change, however many it has missed, and otherwise starts again", () => {
    const live = new LiveBoard();
    live.connect();
    const rows = (id: string) => ({ set: [{ id }], gone: [] }) as unknown as Rows;
    const shown = (): unknown => {
      let state: LiveState | undefined;
      live.onChange((now) => {
        state = now;
      })();
      return state?.picture?.rows;
    };
    ToldSource.last?.tell({ kind: "Picture", id: "r.1", clock, picture });
    // This one includes the changes in between.
    const change = { rows: rows("a") };
    ToldSource.last?.tell({ kind: "Change", id: "r.7", after: "r.1", clock, change });
    expect(shown()).toEqual([{ id: "a" }]);
    live.connect();
    expect(ToldSource.asked.at(-1)).toBe("api/stream?after=r.7");
    const other = { rows: rows("b") };
    ToldSource.last?.tell({ kind: "Change", id: "r.9", after: "r.8", clock, change: other });
    expect(shown()).toEqual([{ id: "a" }]);
    expect(ToldSource.asked.at(-1)).toBe("api/stream");
    live.setShown(false);
  });

  it("keeps saying that access was refused, asks again slowly, and recovers", async () => {
    vi.useFakeTimers();
    vi.stubGlobal("fetch", () => Promise.resolve(new Response("{}", { status: 401 })));
    const live = new LiveBoard();
    const heard = new Set<LiveState["connection"]>();
    live.connect();
    ToldSource.last?.onerror?.();
    await vi.advanceTimersByTimeAsync(0);
    live.onChange(({ connection }) => heard.add(connection));
    const before = ToldSource.asked.length;
    for (let second = 0; second < 60; second += 1) {
      const { last } = ToldSource;
      await vi.advanceTimersByTimeAsync(1000);
      if (ToldSource.last !== last) ToldSource.last?.onerror?.();
    }
    expect([...heard]).toEqual(["Refused"]);
    expect(ToldSource.asked.length - before).toBe(2);
    await vi.advanceTimersByTimeAsync(30_000);
    ToldSource.last?.tell({ kind: "Picture", id: "r.1", clock, picture });
    expect(live.state.connection).toBe("Live");
    live.setShown(false);
    vi.useRealTimers();
  });
});
