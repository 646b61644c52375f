import type { Instant } from "../core/time/time.ts";
import type { LastcallError } from "../errors.ts";
import type { ModelMachine } from "./model-machine.ts";

/** What happened to a machine, as it was right after. */
export interface CloudEvent {
  readonly kind: "Born" | "Registered" | "Noticed" | "Stopping" | "Gone";
  readonly at: Instant;
  readonly machine: ModelMachine;
  /** Why it ends; set from Noticed and Stopping on. */
  readonly because?: "Preempted" | "Limit" | "Released";
}

/** A call that is to fail. */
export interface CloudFault {
  readonly on: "describe" | "check" | "release" | "launchTimes";
  readonly error: LastcallError;
  readonly times?: number;
}
