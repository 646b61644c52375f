import type { ClusterEvent, EventReason, Telemetry } from "../contracts/telemetry.ts";
import type { MissingMachine } from "../core/limits/missing-machine.ts";
import type { FleetPlan, PolicyPlan } from "../core/plan/fleet-plan.ts";
import type { Policy } from "../core/policy/policy.ts";
import { counted } from "../core/reason/counted.ts";
import type { Instant } from "../core/time/time.ts";

/**
 * Reports, once each, that a fleet has become unhealthy, that it is healthy again, and that
 * machines which nothing has replaced are no longer expected back.
 */
export class FleetHealthReporter {
  readonly #telemetry: Telemetry;
  /** The policies whose voluntary departures were held in the last pass. */
  #unhealthy: ReadonlySet<string> = new Set();
  /** What was missing of each policy in the last pass. */
  #missing: ReadonlyMap<string, readonly MissingMachine[]> = new Map();

  constructor(telemetry: Telemetry) {
    this.#telemetry = telemetry;
  }

  tell({ policies, at }: FleetPlan): void {
    for (const plan of policies) {
      this.#tellHold(plan);
      this.#tellShrunk(plan, at);
    }
    const isHeld = ({ health }: PolicyPlan) => health.hold !== undefined;
    this.#unhealthy = new Set(policies.filter(isHeld).map(({ policy }) => policy.name));
    this.#missing = new Map(policies.map(({ policy, health }) => [policy.name, health.missing]));
  }

  #tellHold({ policy, health }: PolicyPlan): void {
    const { hold } = health;
    const was = this.#unhealthy.has(policy.name);
    if (hold !== undefined && !was) {
      const message = `No voluntary departure of the policy starts: ${hold.detail}. Notices are still handled.`;
      this.#emit(policy, { type: "Warning", reason: "FleetUnhealthy", message });
    }
    if (hold === undefined && was) {
      const message = "The fleet is healthy again: departures of the policy may start.";
      this.#emit(policy, { type: "Normal", reason: "FleetHealthy", message });
    }
  }

  #tellShrunk({ policy, matched, health }: PolicyPlan, at: Instant): void {
    const missing = new Set(health.missing.map(({ departure }) => departure.uid));
    const given = (this.#missing.get(policy.name) ?? []).filter(
      ({ untilAt, departure }) => untilAt <= at && !missing.has(departure.uid),
    );
    if (given.length === 0) return;
    const names = firstNames(given.map(({ departure }) => departure.node.name));
    const size = matched + missing.size;
    const message = `Nothing has replaced ${names}: from now on the fleet counts as ${counted(size, "node")}.`;
    this.#emit(policy, { type: "Warning", reason: "FleetShrunk", message });
  }

  #emit(
    { name, uid }: Policy,
    event: Pick<ClusterEvent, "type" | "message"> & { readonly reason: EventReason },
  ): void {
    const { log, events } = this.#telemetry;
    const { type, reason, message } = event;
    const logged = { policy: name, reason, message };
    if (type === "Warning") log.warn("fleet-health", logged);
    else log.info("fleet-health", logged);
    if (uid === undefined) return;
    events.emit({ type, reason, message, about: { kind: "DeparturePolicy", name, uid } });
  }
}

/** How many nodes an Event names. */
const namedNodes = 5;

function firstNames(names: readonly string[]): string {
  const more = names.length - namedNodes;
  return `${names.slice(0, namedNodes).join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}
