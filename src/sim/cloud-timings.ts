import { type Millis, millis, seconds } from "../core/time/time.ts";

/** How long things take; each has a default that is usual on GKE. */
export interface CloudTimings {
  /** From the launch of a machine until its Node is registered and ready. */
  readonly boot: Millis;
  /** From the loss of a machine until its group makes the next one. */
  readonly remake: Millis;
  /** From an order to stop until the machine is gone. */
  readonly stop: Millis;
  /** From the notice of a preemption until the power goes. */
  readonly notice: Millis;
  /** From the notice until the machine's operating system is told; 0 without `preemptionNoticeDuration`. */
  readonly beforeShutdown: Millis;
  /** From the loss of a machine until its Node object is taken away. */
  readonly forgetNode: Millis;
}

export const usualTimings: CloudTimings = {
  boot: seconds(50),
  remake: seconds(10),
  stop: seconds(20),
  notice: seconds(30),
  beforeShutdown: millis(0),
  forgetNode: seconds(5),
};
