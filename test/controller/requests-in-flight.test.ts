import { expect, it } from "vitest";
import type { DepartureOptions } from "../../src/controller/departure/departure-options.ts";
import { DepartureTelemetry } from "../../src/controller/departure/departure-telemetry.ts";
import { OpenState } from "../../src/controller/departure/open-state.ts";
import { Refusals } from "../../src/controller/departure/refusals.ts";
import type { RequestSender } from "../../src/controller/departure/request-sender.ts";
import { RequestsInFlight } from "../../src/controller/departure/requests-in-flight.ts";
import { StatusWriter } from "../../src/controller/departure/status-writer.ts";
import { hours, plus, seconds } from "../../src/core/time/time.ts";
import { type ErrorCode, LastcallError } from "../../src/errors.ts";
import { eventLoopTurn } from "../../src/runtime/real-clock.ts";
import { VirtualClock } from "../../src/sim/time/virtual-clock.ts";
import { startAt } from "../core/drain/drain-scene.ts";
import { aDeparture, aNode, aPolicy } from "../core/fleet-builder.ts";

const key = "remove node";

/** A released machine whose Node is to be deleted, by an API server that fails as it is told. */
function stage() {
  const clock = new VirtualClock({ startAt, settle: eventLoopTurn });
  const departure = aDeparture(aNode("n1"), { cause: "Planned", status: { phase: "Releasing" } });
  let code: ErrorCode = "API_REFUSED";
  const sender = {
    send: () => Promise.reject(new LastcallError(code, "Cannot delete the node n1")),
  } as unknown as RequestSender;
  const telling = {
    log: { warn() {}, error() {} },
    metrics: { count() {} },
    events: { emit() {} },
  };
  const options = { ...telling, clock, rng: () => 0.5 } as unknown as DepartureOptions;
  const statusWriter = new StatusWriter(options);
  const state = new OpenState({ departure, policy: aPolicy() }, { clock, statusWriter });
  const telemetry = new DepartureTelemetry(options, clock);
  const refusals = new Refusals(options, state, telemetry);
  const requests = new RequestsInFlight({
    ...{ options, state, sender, telemetry, refusals },
    ...{ onAnswer: () => undefined, onLeaseLost: () => undefined },
  });
  /** Fails so each twenty seconds for a while; returns for how long it counts as failing. */
  return async (failsWith: ErrorCode, forMs: number): Promise<number> => {
    code = failsWith;
    const endAt = plus(clock.now(), forMs as ReturnType<typeof seconds>);
    while (clock.now() < endAt) {
      await clock.runUntil(plus(clock.now(), seconds(20)));
      requests.want([{ kind: "RemoveNode", key }], false);
      await requests.settled();
    }
    return clock.monotonic() - (state.memory.asked[key]?.sinceMs ?? Number.NaN);
  };
}

it("a refusal counts from the first answer after an outage: nothing was refused meanwhile", async () => {
  const failing = stage();
  expect(await failing("API_UNREACHABLE", hours(1))).toBeGreaterThan(hours(0.9));
  expect(await failing("API_REFUSED", seconds(20))).toBe(0);
  expect(await failing("API_REFUSED", hours(1))).toBe(hours(1));
});
