import type { Clock } from "../../contracts/clock.ts";
import { minutes } from "../../core/time/time.ts";
import { isLastcallError } from "../../errors.ts";

interface ScalingGroupRef {
  readonly region: string | undefined;
  readonly group: string;
}

interface Kept {
  readonly problem: string;
  readonly untilMs: number;
}

/** Draining one node in vain is enough. */
const keptForMs = minutes(30);

/**
 * Refusals of Auto Scaling groups that no check can foresee: for half an hour, the next releases of
 * the group count as impossible.
 */
export class GroupRefusals {
  readonly #clock: Pick<Clock, "monotonic">;
  readonly #denied = new Map<string, Kept>();
  readonly #minimum = new Map<string, Kept>();

  constructor(clock: Pick<Clock, "monotonic">) {
    this.#clock = clock;
  }

  /** Keeps why the group refused to terminate an instance. */
  note(
    { desired, ...ref }: ScalingGroupRef & { readonly desired: "Kept" | "Decremented" },
    error: unknown,
  ): void {
    if (!isLastcallError(error)) return;
    if (error.code === "CLOUD_RIGHT_MISSING") {
      const permission = "autoscaling:TerminateInstanceInAutoScalingGroup";
      const problem = `the permission ${permission} was missing on the Auto Scaling group ${ref.group} at the last release, grant it (docs/cloud/aws.md#rights)`;
      this.#keep(this.#denied, ref, problem);
    }
    if (error.code === "CLOUD_REFUSED" && desired === "Decremented" && !error.retryable) {
      const problem = `the Auto Scaling group ${ref.group} refused to shrink at the last release, and does not say by how much an instance would shrink it, lower its minimum or set instance.release to Recreate`;
      this.#keep(this.#minimum, ref, problem);
    }
  }

  /** The permission was missing. */
  denied(ref: ScalingGroupRef): string | undefined {
    return this.#kept(this.#denied, ref);
  }

  /** The group refused to shrink; for an instance whose share of its capacity is not known. */
  minimum(ref: ScalingGroupRef): string | undefined {
    return this.#kept(this.#minimum, ref);
  }

  #keep(kept: Map<string, Kept>, ref: ScalingGroupRef, told: string): void {
    const problem = `${told}; the next attempt follows within half an hour`;
    kept.set(keyOf(ref), { problem, untilMs: this.#clock.monotonic() + keptForMs });
  }

  #kept(kept: ReadonlyMap<string, Kept>, ref: ScalingGroupRef): string | undefined {
    const found = kept.get(keyOf(ref));
    if (found === undefined || this.#clock.monotonic() >= found.untilMs) return undefined;
    return found.problem;
  }
}

function keyOf({ region, group }: ScalingGroupRef): string {
  return `${region} ${group}`;
}
