import { expect, it } from "vitest";
import { formatInstant, plus, seconds } from "../../src/core/time/time.ts";
import { type DoctorFacts, known } from "../../src/doctor/facts.ts";
import { doctorReport } from "../../src/doctor/report.ts";
import { at, green, policyOf } from "./green-facts.ts";

const other = known([{ namespace: "default", holder: "host-7" }]);
const frozen = policyOf("spot", { gates: { freezeUntil: formatInstant(plus(at, seconds(1))) } });

it.each<[string, string, string, string, Partial<DoctorFacts>]>([
  [
    "a second leader in another namespace",
    "lease",
    "Fail",
    "c-1 leads in lastcall, and host-7 leads in the namespace default",
    { otherLeaders: other },
  ],
  [
    "a leader in another namespace than the one that is checked",
    "lease",
    "Fail",
    "nobody leads in lastcall, but host-7 leads in the namespace default",
    { otherLeaders: other, lease: known(undefined) },
  ],
  [
    "a policy whose freeze has not ended",
    "paused",
    "Warn",
    "spot is frozen by gates.freezeUntil",
    { policies: known({ policies: [frozen], bad: [], states: new Map() }) },
  ],
])("doctor reports %s", (_, id, status, message, facts) => {
  const { checks } = doctorReport({ ...green, ...facts });
  expect(checks.find((check) => check.id === id)).toMatchObject({ status, message });
});

it("names the namespace in which it looked in the command for the controller's log", () => {
  const { checks } = doctorReport({ ...green, namespace: "spot", lease: known(undefined) });
  expect(checks.find(({ id }) => id === "lease")?.fix).toBe(
    "check the controller's log: kubectl logs -n spot -l app.kubernetes.io/component=controller",
  );
});
