import { expect, it } from "vitest";
import { boardPicture } from "../../../src/board/picture.ts";
import { noRights } from "../../../src/board/stream.ts";
import type { Departure } from "../../../src/core/departure/departure.ts";
import { explainForecast } from "../../../src/core/plan/explain-forecast.ts";
import { fleetHeadline } from "../../../src/core/plan/headline.ts";
import { planFleet } from "../../../src/core/plan/plan.ts";
import { hours, minus, minutes, plus } from "../../../src/core/time/time.ts";
import { aDeparture, aNode, aPolicy, at } from "../fleet-builder.ts";

/** Two nodes were due at once; the first has started, and the other one waits for its turn. */
const now = at("2026-11-20T12:05:00Z");
const dueAt = at("2026-11-20T12:00:00Z");
const turnAt = plus(dueAt, minutes(15));
const nodes = ["n0", "n1"].map((name) => aNode(name, { createdAt: minus(now, hours(20)) }));

function departuresWith(status: Partial<Departure["status"]>): readonly Departure[] {
  return nodes.map((node, place) =>
    aDeparture(node, {
      ...{ departAt: dueAt, deadlineAt: plus(now, hours(3.5)), createdAt: minus(now, hours(1)) },
      status:
        place === 0 ? { phase: "Draining", startedAt: dueAt } : { phase: "Scheduled", ...status },
    }),
  );
}

const policies = [aPolicy()];
const fleetOf = (departures: readonly Departure[]) => ({
  ...{ policies, badPolicies: [], nodes, departures },
});

it("a due departure is expected when its turn comes, and not on schedule until then", () => {
  const fleet = fleetOf(departuresWith({}));
  const plan = planFleet({ ...fleet, at: now });
  const [spot] = plan.policies;
  expect(spot?.departures.map(({ heldBackTo }) => heldBackTo)).toEqual([turnAt]);
  expect(spot && explainForecast(spot)).toBe("The departure is held back");
  const next = fleetHeadline({ ...fleet, plan }).find(({ subject }) => subject === "Next");
  expect(next?.text).toBe("n1 leaves at 2026-11-20T12:15:00.000Z");
});

it("its row does not claim that nothing starts it", () => {
  const state = {
    ...{ cluster: "prod", isDemo: false, missing: [], rights: noRights },
    ...{ isCounted: false, connection: { kind: "Live" } as const },
  };
  const { rows } = boardPicture(fleetOf(departuresWith({})), { now, state });
  expect(rows.find(({ node }) => node === "n1")).toMatchObject({
    ...{ state: "Scheduled", departAt: dueAt, heldBackTo: turnAt },
  });
});
