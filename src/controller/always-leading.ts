import type { Leadership, LeadershipHooks } from "../contracts/leadership.ts";

/** `--leader-elect=false`: this process leads as long as it lives; it must be the only one. */
export class AlwaysLeading implements Leadership {
  run(hooks: LeadershipHooks, signal: AbortSignal): Promise<void> {
    return hooks.onLeading(signal);
  }

  isLeader(): boolean {
    return true;
  }
}
