import type { LeaderDuty, Leadership } from "../contracts/leadership.ts";

/**
 * `--leader-elect=false`: this process leads for as long as it runs; it must be the only replica.
 */
export class AlwaysLeading implements Leadership {
  run(duty: LeaderDuty, signal: AbortSignal): Promise<void> {
    return duty.onLeading(signal);
  }

  isLeader(): boolean {
    return true;
  }
}
