import type { LeaderDuty, Leadership } from "../contracts/leadership.ts";

/** `--leader-elect=false`: this process leads as long as it lives; it must be the only one. */
export class AlwaysLeading implements Leadership {
  run(duty: LeaderDuty, signal: AbortSignal): Promise<void> {
    return duty.onLeading(signal);
  }

  isLeader(): boolean {
    return true;
  }
}
