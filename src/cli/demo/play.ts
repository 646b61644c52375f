import type { Clock } from "../../contracts/clock.ts";
import { hours, type Millis, millis, plus } from "../../core/time/time.ts";
import type { VirtualClock } from "../../sim/time/virtual-clock.ts";
import type { CommandIo } from "../command-line/command-io.ts";

/** Between two looks at how much time has passed. */
const frameMs = millis(50);
/** A process that was stopped for longer does not catch up on more than this. */
const longestFrameMs = 250;

export interface Playing {
  /** The clock of the model; it goes by nothing but this. */
  readonly clock: VirtualClock;
  readonly real: Clock;
  /**
   * How many times as fast as the real one; asked again before each step, and 0 while it stands.
   */
  readonly speed: () => number;
  readonly onFrame: () => void;
}

/**
 * Lets a model's time pass in step with real time until the signal aborts. It goes from one timer
 * of the model to the next: so what happens, and when, is the same at any speed, and a speed that
 * depends on what has happened changes at that very instant.
 */
export async function play(playing: Playing, signal: AbortSignal): Promise<void> {
  const { real, onFrame } = playing;
  let lastMs = real.monotonic();
  let leftMs = 0;
  while (!signal.aborted) {
    onFrame();
    await real.sleep(frameMs, signal).catch(() => undefined);
    const nowMs = real.monotonic();
    leftMs = await pass(playing, leftMs + Math.min(longestFrameMs, nowMs - lastMs), signal);
    lastMs = nowMs;
  }
}

/**
 * Lets so much of real time pass in the model; gives what is left of it, under a millisecond there.
 */
async function pass(
  { clock, speed }: Playing,
  realMs: number,
  signal: AbortSignal,
): Promise<number> {
  let leftMs = realMs;
  while (!signal.aborted) {
    const factor = speed();
    const span = Math.floor(leftMs * factor);
    if (span < 1) return factor === 0 ? 0 : leftMs;
    const nowAt = clock.now();
    const endAt = plus(nowAt, millis(span));
    const dueAt = clock.nextDueAt() ?? endAt;
    await clock.runUntil(dueAt < endAt ? dueAt : endAt);
    leftMs -= (clock.now() - nowAt) / factor;
  }
  return 0;
}

/** Without `--for` it runs until it is interrupted, or for a century. */
const forever = hours(876_000);

interface Bounds {
  /** The work that is played; if it fails, so does the play. */
  readonly running: Promise<void>;
  /** Absent: until an interrupt. */
  readonly span: Millis | undefined;
  readonly io: Pick<CommandIo, "clock" | "signal">;
}

/** Plays for a span of real time or until an interrupt; rejects if what runs fails before. */
export async function playUntilOver(playing: Playing, bounds: Bounds): Promise<void> {
  const over = new AbortController();
  const played = play(playing, over.signal);
  const failed = bounds.running.then(() => new Promise<never>(() => {}));
  try {
    await Promise.race([ends(bounds), failed, played]);
  } finally {
    over.abort();
    await played;
  }
}

/** Resolves after the span, or as soon as somebody interrupts. */
async function ends({ span = forever, io }: Bounds): Promise<void> {
  try {
    await io.clock.sleep(span, io.signal);
  } catch (error) {
    if (!io.signal.aborted) throw error;
  }
}
