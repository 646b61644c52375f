import type {
  InstanceReleaser,
  LaunchTimeReading,
  LaunchTimes,
  Releasability,
  ReleaseQuestion,
  ReleaseRequest,
  ReleaseResult,
} from "../../src/contracts/cloud.ts";
import type { MachineState } from "../../src/core/cluster/machine.ts";
import { minutes, seconds } from "../../src/core/time/time.ts";
import { isLastcallError, LastcallError } from "../../src/errors.ts";
import type { ProcessClock } from "./process-clock.ts";
import type { CloudVerb, Surroundings } from "./surroundings.ts";

/** A releaser waits no longer for a machine to go (`cloud/release/release-loop.ts`). */
const releaseLimit = minutes(20);

interface ProcessCloudOptions {
  readonly stage: Surroundings;
  readonly process: string;
  readonly clock: ProcessClock;
}

/** The cloud's API as one process reaches it. */
export class ProcessCloud implements InstanceReleaser, LaunchTimes {
  readonly #options: ProcessCloudOptions;

  constructor(options: ProcessCloudOptions) {
    this.#options = options;
  }

  describe(providerID: string, signal: AbortSignal): Promise<MachineState> {
    const { cloud } = this.#options.stage.cluster;
    return this.#call(["describe", providerID], () => cloud.describe(providerID, signal), signal);
  }

  check(question: ReleaseQuestion, signal: AbortSignal): Promise<Releasability> {
    const { cloud } = this.#options.stage.cluster;
    return this.#call(["check", question.providerID], () => cloud.check(question, signal), signal);
  }

  launchTimesOf(ids: readonly string[], signal: AbortSignal): Promise<LaunchTimeReading> {
    const { cloud } = this.#options.stage.cluster;
    return this.#call(["launchTimes", "all"], () => cloud.launchTimesOf(ids, signal), signal).catch(
      (error: unknown) => {
        if (!isLastcallError(error)) throw error;
        return { bornAt: new Map(), faults: [error] };
      },
    );
  }

  release(request: ReleaseRequest, signal: AbortSignal): Promise<ReleaseResult> {
    const { cloud } = this.#options.stage.cluster;
    return this.#call(
      ["release", request.providerID],
      () => cloud.release(request, signal),
      signal,
    );
  }

  async #call<T>(
    [verb, providerID]: readonly [CloudVerb, string],
    act: () => Promise<T>,
    signal: AbortSignal,
  ): Promise<T> {
    const { stage, process, clock } = this.#options;
    await clock.awake();
    const machine = providerID.slice(providerID.lastIndexOf("/") + 1);
    const effect = stage.cloudEffect({ process, verb, machine });
    const tell = (result: string): void => {
      stage.tell({ kind: "CloudCall", process, call: verb, machine, result });
    };
    if (effect?.kind === "Late") await stage.clock.sleep(seconds(effect.ms / 1000), signal);
    if (effect?.kind === "Fails") {
      tell(effect.error.code);
      throw effect.error;
    }
    if (effect?.kind === "Forgotten") {
      tell("accepted, and nothing happens");
      await stage.clock.sleep(releaseLimit, signal);
      throw cloudError("CLOUD_UNREACHABLE");
    }
    if (effect?.kind === "FailsAfter") {
      // It waits until the machine is gone, but its caller does not.
      void act().catch(() => {});
      await stage.clock.sleep(seconds(1), signal);
      tell(`done, but ${effect.error.code}`);
      throw effect.error;
    }
    const result = await act();
    tell(JSON.stringify(result));
    await clock.awake();
    return result;
  }
}

export function cloudError(
  code: "CLOUD_UNREACHABLE" | "CLOUD_RATE_LIMITED" | "CLOUD_CREDENTIALS" | "CLOUD_RIGHT_MISSING",
): LastcallError {
  return new LastcallError(code, `Cannot ask the cloud: ${code}, expected a response`);
}
