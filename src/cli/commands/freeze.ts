import type { BoardAct } from "../../board/act/act.ts";
import { didYouMean } from "../../config/problem.ts";
import { LastcallError } from "../../errors.ts";
import { connect } from "../cluster/connect.ts";
import type { CommandInput, CommandRun } from "../command-line/command.ts";
import { type FleetSnapshot, readFleet } from "../input/fleet-snapshot.ts";
import { endOf, performActs } from "./perform-acts.ts";

type Freeze = CommandInput<"freeze">;

/** Writes `gates.freezeUntil` of policies, or removes it, with the caller's permissions. */
export const runFreeze: CommandRun<"freeze"> = async ({ options, io }) => {
  checkAsked(options);
  const { policy } = options;
  const { api, close } = await connect({ ...options, signal: io.signal }, io);
  try {
    const source = { ...options, from: [], filename: [] };
    // All policies are known by a list alone.
    const named = options.all ? undefined : ({ kind: "DeparturePolicy", names: policy } as const);
    const fleet = await readFleet(source, { api, optional: ["Node", "Departure"], named }, io);
    const names = meantPolicies(options, fleet);
    const until = endOf(options, { io, now: fleet.readAt });
    const looked = names.map((name) => ({ name, idle: idleReason(name, { fleet, options }) }));
    const meant = looked.filter(({ idle }) => idle === undefined);
    const acts = meant.map(({ name: policy }): BoardAct => ({ kind: "Freeze", policy, until }));
    const idle = looked.flatMap((one) => one.idle ?? []);
    return await performActs({ acts, idle }, { api, fleet, io, ...options });
  } finally {
    close();
  }
};

/** Throws USAGE. */
function checkAsked({ policy, all, undo, until, for: span }: Freeze["options"]): void {
  if (policy.length === 0 && !all) {
    throw new LastcallError(
      "USAGE",
      "Cannot run lastcall freeze: no policy was given, expected --policy NAME or --all",
    );
  }
  if (!undo && until === undefined && span === undefined) {
    throw new LastcallError(
      "USAGE",
      "Cannot run lastcall freeze: no end was given, expected --until TIME, --for DURATION or --undo",
    );
  }
}

/** Throws NOT_FOUND. */
function meantPolicies({ policy, all }: Freeze["options"], fleet: FleetSnapshot) {
  const known = [...fleet.policies, ...fleet.badPolicies].map(({ name }) => name).toSorted();
  const missing = policy.find((name) => !known.includes(name));
  if (missing !== undefined || known.length === 0) {
    const hint = missing === undefined ? "" : policyHint(missing, known);
    const found =
      missing === undefined ? "there is no policy" : `there is no policy ${missing}${hint}`;
    throw new LastcallError(
      "NOT_FOUND",
      `Cannot freeze: ${found}, list them with: kubectl get departurepolicies`,
    );
  }
  return all ? known : [...new Set(policy)];
}

function policyHint(missing: string, known: readonly string[]): string {
  const listed = missing.split(",");
  const isList = listed.length > 1 && listed.every((one) => known.includes(one));
  const meant = isList ? listed.join(" --policy ") : didYouMean(missing, known);
  return meant === undefined ? "" : ` (did you mean ${isList ? "--policy " : ""}${meant}?)`;
}

/** Why there is nothing to do for a policy. */
function idleReason(
  name: string,
  { fleet, options }: Pick<Freeze, "options"> & { readonly fleet: FleetSnapshot },
): string | undefined {
  const policy = fleet.policies.find((one) => one.name === name);
  if (policy === undefined) {
    return `Policy ${name} cannot be read, so nothing of it leaves as planned: it is left as it is, freeze it once it is corrected`;
  }
  const isFrozen = policy.gates.freezeUntil !== undefined;
  return options.undo && !isFrozen ? `Policy ${name} is not frozen` : undefined;
}
