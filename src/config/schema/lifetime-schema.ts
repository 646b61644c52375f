import { lifetimeLimits } from "../../cloud/facts/cloud-marks.ts";
import type { Millis } from "../../core/time/time.ts";
import {
  celIsDuration,
  durationField,
  limitField,
  type ObjectField,
  platformLimit,
  ruleOn,
  type SchemaFields,
  type SchemaRule,
  type SchemaValues,
  spanOf,
} from "./field-schema.ts";

const lifetimeFields = {
  min: durationField({
    description: "No planned departure before this age.",
    default: "0s",
  }),
  max: limitField({
    description:
      "The age at which the cloud terminates the machine, or a limit of your own. `Platform` is the limit that the cloud names by the labels of a node (24h for preemptible machines on GKE; other machines leave only on notices). If not set, there are no planned departures, only notices.",
  }),
  reserve: durationField({
    description: "How long before `max` a node leaves at the latest.",
    default: "30m",
  }),
} as const satisfies SchemaFields;
type WrittenLifetime = SchemaValues<typeof lifetimeFields>;

/** The shortest limit that a cloud names: what is longer would make every node overdue at once. */
const shortestLimit = `${Math.min(...lifetimeLimits.map((limit) => limit.hours))}h`;

/** The limit that `min` and `reserve` have to fit into. */
function limitOf(max: string): Millis {
  return spanOf(max === platformLimit ? shortestLimit : max);
}

const celLimit = `(self.max == '${platformLimit}' ? '${shortestLimit}' : self.max)`;

/**
 * A text that is no duration is refused where it stands, and not here in other words. Written out,
 * because the API server cannot estimate what `exists` costs over a list of texts.
 */
function celOfLifetime(cel: string): string {
  const texts = [celLimit, "self.min", "self.reserve"];
  const isUnread = texts.map((text) => `!${celIsDuration(text)}`).join(" || ");
  return `!has(self.max) || ${isUnread} || ${cel}`;
}

const lifetimeRules: readonly SchemaRule[] = [
  ruleOn<WrittenLifetime>({
    cel: celOfLifetime(`duration(${celLimit}) >= duration(self.min)`),
    at: "max",
    wanted: "at least lifetime.min",
    holds: ({ min, max }) => max === undefined || limitOf(max) >= spanOf(min),
    found: ({ min, max }) => `${max} under a min of ${min}`,
  }),
  ruleOn<WrittenLifetime>({
    cel: celOfLifetime(`duration(self.reserve) < duration(${celLimit})`),
    at: "reserve",
    wanted: "less than lifetime.max",
    holds: ({ max, reserve }) => max === undefined || spanOf(reserve) < limitOf(max),
    found: ({ max, reserve }) => `${reserve} with a max of ${max}`,
  }),
  // Holds if one of the two rules above fails, so that a mistake is reported once.
  ruleOn<WrittenLifetime>({
    cel: celOfLifetime(
      `duration(${celLimit}) < duration(self.min) || duration(self.reserve) >= duration(${celLimit}) || duration(self.min) <= duration(${celLimit}) - duration(self.reserve)`,
    ),
    at: "min",
    wanted: "at most lifetime.max less lifetime.reserve",
    holds: ({ min, max, reserve }) =>
      max === undefined ||
      limitOf(max) < spanOf(min) ||
      spanOf(reserve) >= limitOf(max) ||
      spanOf(min) <= limitOf(max) - spanOf(reserve),
    found: ({ min, max, reserve }) => `${min} with a max of ${max} and a reserve of ${reserve}`,
  }),
];

export const lifetimeField = {
  type: "object",
  description: "The ages between which a node's planned departure lies.",
  default: {},
  properties: lifetimeFields,
  rules: lifetimeRules,
} as const satisfies ObjectField;
