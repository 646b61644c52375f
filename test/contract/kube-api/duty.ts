/** A condition that has to become true soon. */
export interface Duty {
  readonly what: string;
  readonly isMet: () => Promise<boolean> | boolean;
}

const patienceMs = 15_000;
const pauseMs = 50;

/** Polls, because a real server's controllers take a moment; the model responds immediately. */
export async function meetsDuty(duty: Duty): Promise<boolean> {
  const endMs = performance.now() + patienceMs;
  while (!(await duty.isMet())) {
    if (performance.now() > endMs) return false;
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
  return true;
}
