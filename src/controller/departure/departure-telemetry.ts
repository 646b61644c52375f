import type { Clock } from "../../contracts/clock.ts";
import type {
  EventReason,
  EventTarget,
  MetricLabels,
  Telemetry,
} from "../../contracts/telemetry.ts";
import { isDetached } from "../../core/action/action-plan.ts";
import type { UnplacedPod } from "../../core/capacity/capacity-fit.ts";
import type { PodIdentity } from "../../core/cluster/pod.ts";
import {
  type ActionRecord,
  cloudDeadline,
  type Departure,
  type DepartureStatus,
  type Phase,
  policyNameOf,
  type UncleanPod,
} from "../../core/departure/departure.ts";
import { departureFigures } from "../../core/departure/departure-figures.ts";
import { budgetAnswers } from "../../core/departure/drain-reason.ts";
import type { DrainAct } from "../../core/drain/drain-progress.ts";
import type { DrainStep, DrainVerdict, HeldPod } from "../../core/drain/drain-step.ts";
import { ruleOfLoss, ruleReference } from "../../core/drain/drain-time.ts";
import type { DrainPlan, PlannedPod } from "../../core/drain-plan/drain-plan.ts";
import { explainDrain } from "../../core/drain-plan/drain-plan-report.ts";
import type { Said } from "../../core/next/evaluation.ts";
import type { RequestFault } from "../../core/next/scene.ts";
import { explain } from "../../core/reason/reason.ts";
import type { Instant } from "../../core/time/time.ts";
import { isLastcallError, messageOf } from "../../errors.ts";

/** The maximum number of pods with the same problem that Events name. */
const namedPods = 10;

/** Log lines, Events and metrics of one departure. */
export class DepartureTelemetry {
  readonly #telemetry: Telemetry;
  readonly #clock: Clock;
  readonly #emitted = new Set<string>();

  constructor(telemetry: Telemetry, clock: Clock) {
    this.#telemetry = telemetry;
    this.#clock = clock;
  }

  /** Tells what an evaluation has to say. */
  say(departure: Departure, said: Exclude<Said, { kind: "PhaseChanged" }>): void {
    switch (said.kind) {
      case "Cordoned":
        this.cordoned(departure);
        break;
      case "Reported":
        this.reported(departure);
        break;
      case "Impossible":
        this.impossible(departure, said.pods);
        break;
      case "Unplaced":
        this.unplaced(departure, said.pods);
        break;
      case "DrainStepped":
        this.drainStepped(departure, said.step, said.plan);
        break;
      case "DrainEnded":
        this.drainEnded(departure, said.end);
        break;
      case "ReservationTimedOut":
        this.reservationTimedOut(departure, said.detail);
        break;
      case "VolumesLeft":
        this.volumesLeft(departure, said.detail);
        break;
      case "LeftBehind":
        this.leftBehind(departure, departure.status);
        break;
      case "Faulted":
        this.#faulted(said.event, departure, said.fault);
        break;
    }
  }

  phaseChanged(before: Departure, after: Departure): void {
    const { status } = after;
    this.#log(before.status.phase, after);
    if (status.phase === "Preparing") this.#say(after, "DepartureStarted", "Normal");
    if (status.phase !== "Ended") return;
    const clean = status.outcome === "Planned" || status.outcome === "Cancelled";
    this.#say(after, "DepartureEnded", clean ? "Normal" : "Warning");
    this.#count(after);
    this.#countFigures(after);
  }

  /** The machine is gone before the start: an autoscaler may have taken it, so no Event. */
  lostUnbegun(departure: Departure): void {
    this.#log("Scheduled", departure);
    this.#count(departure);
  }

  #log(from: Phase, { name, node, status }: Departure): void {
    this.#telemetry.log.info("departure", {
      node: node.name,
      departure: name,
      from,
      to: status.phase,
      reason: status.reason,
      message: status.message,
      outcome: status.outcome,
    });
  }

  #count(departure: Departure): void {
    const outcome = departure.status.outcome ?? "";
    const labels = { ...labelsOf(departure), outcome };
    this.#telemetry.metrics.count("lastcall_departures_total", labels);
  }

  /** Once, at the end: the status then holds what every controller before has counted. */
  #countFigures(departure: Departure): void {
    const { noticedAt, status } = departure;
    const { metrics } = this.#telemetry;
    const { podsKilled, podsLost, drain } = departureFigures(status);
    const labels = labelsOf(departure);
    if (podsKilled > 0) metrics.count("lastcall_pods_killed_total", labels, podsKilled);
    if (podsLost > 0) metrics.count("lastcall_pods_lost_total", labels, podsLost);
    if (drain === undefined || noticedAt !== undefined) return;
    const { ms, reason } = drain;
    const ended = { outcome: status.outcome ?? "", reason };
    metrics.observe("lastcall_planned_drain_seconds", ms / 1000, ended);
  }

  cordoned(departure: Departure): void {
    if (departure.noticedAt === undefined || this.#emitted.has("cordoned")) return;
    this.#emitted.add("cordoned");
    const seconds = (this.#clock.now() - departure.noticedAt) / 1000;
    this.#telemetry.metrics.observe("lastcall_notice_to_cordon_seconds", Math.max(0, seconds));
  }

  /** Reports each pod once that is blocked, forced, or whose grace period is truncated. */
  drainStepped(departure: Departure, step: DrainStep, plan: DrainPlan): void {
    for (const held of step.blocked) this.#held(departure, held);
    for (const act of step.acts) if (act.kind === "Delete") this.#forced(departure, act, plan);
    for (const pod of plan.pods) {
      if (pod.cut) this.#cut(departure, pod, explainDrain(pod.reason, pod));
    }
    for (const pod of step.counts.notClean?.slice(0, namedPods) ?? []) {
      this.#sayUnclean(departure, pod);
    }
  }

  /** Reports what blocks a pod, once for each kind of answer. */
  #held(departure: Departure, { pod, reason, message, budgets }: HeldPod): void {
    const { namespace, name } = pod;
    const key = `blocked ${namespace}/${name} ${reason}`;
    if (this.#emitted.has(key)) return;
    const about = { node: departure.node.name, departure: departure.name };
    const fields = { ...about, pod: `${namespace}/${name}`, reason, message };
    this.#telemetry.log.warn("pod-blocked", fields);
    // An overloaded server gets no further requests for that.
    if (reason === "ApiOverloaded") this.#emitted.add(key);
    this.#sayOnce(key, departure, {
      reason: "DrainBlocked",
      message: `${namespace}/${name} blocks the drain of ${departure.node.name}: ${message}`,
      about: [{ kind: "Pod", ...pod }, ...budgets.map(aboutBudget)],
    });
  }

  /** Reports pods that were lost with the machine after the end of the drain. */
  leftBehind(departure: Departure, { drain }: Pick<DepartureStatus, "drain">): void {
    const pods = drain?.notClean?.filter(({ outcome }) => outcome === "LeftBehind") ?? [];
    for (const pod of pods.slice(0, namedPods)) this.#sayUnclean(departure, pod);
  }

  /** Reports a pod that did not terminate cleanly, and the audit rule that predicts it. */
  #sayUnclean(departure: Departure, { namespace, name, outcome, rule }: UncleanPod): void {
    const what =
      outcome === "Killed"
        ? "was killed at the end of its grace period"
        : "was left behind on the node";
    const foretold = rule === undefined ? "" : ` ${ruleReference(rule)}`;
    this.#sayOnce(`unclean ${namespace}/${name}`, departure, {
      reason: outcome === "Killed" ? "PodKilled" : "PodLeftBehind",
      message: `${namespace}/${name} ${what}${foretold}`,
      about: [],
    });
  }

  #forced(departure: Departure, act: DrainAct & { kind: "Delete" }, plan: DrainPlan): void {
    const { namespace, name, uid } = act.pod;
    const planned = plan.pods.find((pod) => pod.uid === uid);
    const { wantedGraceSeconds } = planned ?? {};
    const detail = act.reason === "NamespaceTerminating" ? namespace : act.refusal?.message;
    const facts = { ...act, detail, wantedGraceSeconds };
    // An answer that is not about budgets says nothing about those that select the pod.
    const isBudgets =
      act.reason === "DeleteRule" || (act.refusal && budgetAnswers.has(act.refusal.reason));
    const budgets = isBudgets ? (planned?.budgets ?? []) : [];
    const what = explainDrain(act.reason, facts);
    this.#sayOnce(`forced ${uid}`, departure, {
      reason: "PodForced",
      message: `${namespace}/${name} ${what}`,
      about: [{ kind: "Pod", ...act.pod }, ...budgets.map(aboutBudget)],
    });
    if (act.graceSeconds < (wantedGraceSeconds ?? 0)) this.#cut(departure, act.pod, what);
  }

  #cut(departure: Departure, { namespace, name, uid }: PodIdentity, what: string): void {
    this.#sayOnce(`cut ${namespace}/${name}`, departure, {
      reason: "PodCut",
      message: `${namespace}/${name} ${what} ${ruleReference(ruleOfLoss("Cut"))}`,
      about: [{ kind: "Pod", namespace, name, uid }],
    });
  }

  /** Logs progress within a phase. */
  reported({ node, name, status }: Departure): void {
    const { phase, reason, message } = status;
    this.#telemetry.log.info("departure-message", {
      node: node.name,
      departure: name,
      phase,
      reason,
      message,
    });
  }

  /** Reports before the cordon the first pods that their budgets will block. */
  impossible(departure: Departure, pods: readonly PlannedPod[]): void {
    for (const pod of pods.slice(0, namedPods)) {
      const { namespace, name, uid, budgets } = pod;
      this.#sayOnce(`impossible ${uid}`, departure, {
        reason: "BudgetImpossible",
        message: `${namespace}/${name} ${explainDrain(pod.reason, pod)}`,
        about: [{ kind: "Pod", namespace, name, uid }, ...budgets.map(aboutBudget)],
      });
    }
  }

  /** Reports before the cordon the first pods that fit on no other node. */
  unplaced(departure: Departure, unplaced: readonly UnplacedPod[]): void {
    for (const { pod, detail } of unplaced.slice(0, namedPods)) {
      const { namespace, name, uid } = pod;
      this.#sayOnce(`unplaced ${uid}`, departure, {
        reason: "NoCapacityElsewhere",
        message: `${namespace}/${name} ${explainDrain("NoCapacityElsewhere", { detail })}`,
        about: [{ kind: "Pod", namespace, name, uid }],
      });
    }
  }

  reservationTimedOut(departure: Departure, detail: string): void {
    const message = explain("ReplacementTimeout", { node: departure.node.name, detail });
    this.#sayOnce("room", departure, { reason: "ReplacementTimeout", message, about: [] });
  }

  volumesLeft(departure: Departure, detail: string): void {
    const message = `${departure.node.name} still has volumes attached: ${detail}`;
    this.#sayOnce("volumes", departure, { reason: "VolumesAttached", message, about: [] });
  }

  /**
   * Reports a refusal that its status may not show, because that is what was refused: each time, as
   * an Event expires.
   */
  refused(departure: Departure, detail: string): void {
    const message = `A request for the departure of ${departure.node.name} failed, and is sent again: ${detail}`;
    this.#warn(departure, { reason: "RequestRefused", message, about: [] });
  }

  /** Reports the end of the drain, once: late pods are drained separately. */
  drainEnded(
    departure: Departure,
    { verdict, endedAt }: { readonly verdict: DrainVerdict; readonly endedAt: Instant },
  ): void {
    const { noticedAt } = departure;
    if (noticedAt === undefined || verdict !== "Done" || this.#emitted.has("drained")) return;
    this.#emitted.add("drained");
    const { metrics } = this.#telemetry;
    const seconds = Math.max(0, (endedAt - noticedAt) / 1000);
    metrics.observe("lastcall_notice_to_last_pod_seconds", seconds);
    const deadlineAt = cloudDeadline(departure);
    if (deadlineAt === undefined) return;
    metrics.observe("lastcall_deadline_left_seconds", (deadlineAt - endedAt) / 1000);
  }

  /** Reports an action that has ended or was undone. `all` are the records of all actions. */
  actionEnded(departure: Departure, record: ActionRecord, all: readonly ActionRecord[]): void {
    const { metrics, log } = this.#telemetry;
    const { name, kind, state, result, detail, attempts, seconds } = record;
    metrics.count("lastcall_actions_total", { action: kind, result: state });
    const isWell = state !== "Failed";
    if (!isWell) metrics.count("lastcall_errors_total", { code: result ?? "UNEXPECTED" });
    const about = { node: departure.node.name, departure: departure.name, action: name };
    log[isWell ? "info" : "warn"]("action", {
      ...{ ...about, kind, state, result, attempts, seconds, message: detail },
    });
    if (!isWell) {
      const message = `Action ${name} (${kind}) failed: ${detail ?? result}`;
      this.#sayOnce(`action ${name}`, departure, { reason: "ActionFailed", message, about: [] });
    }
    if (kind === "deregisterTargets" && isDetached(all)) this.#detached(departure);
  }

  #detached({ noticedAt }: Departure): void {
    if (noticedAt === undefined || this.#emitted.has("detached")) return;
    this.#emitted.add("detached");
    const seconds = (this.#clock.now() - noticedAt) / 1000;
    this.#telemetry.metrics.observe("lastcall_notice_to_detached_seconds", Math.max(0, seconds));
  }

  faulted(event: string, departure: Departure, error: unknown): void {
    const code = isLastcallError(error) ? error.code : "UNEXPECTED";
    this.#faulted(event, departure, { code, message: messageOf(error) });
  }

  #faulted(
    event: string,
    departure: Departure,
    { code, message }: Pick<RequestFault, "code" | "message">,
  ): void {
    this.#telemetry.metrics.count("lastcall_errors_total", { code });
    this.#telemetry.log.warn(event, { node: departure.node.name, code, error: message });
  }

  #say(departure: Departure, reason: EventReason, type: "Normal" | "Warning"): void {
    const message = departure.status.message ?? "";
    for (const about of departing(departure)) {
      this.#telemetry.events.emit({ type, reason, message, about });
    }
  }

  #sayOnce(key: string, departure: Departure, what: Warning): void {
    if (this.#emitted.has(key)) return;
    this.#emitted.add(key);
    this.#warn(departure, what);
  }

  #warn(departure: Departure, { reason, message, about }: Warning): void {
    for (const target of [...departing(departure), ...about]) {
      this.#telemetry.events.emit({ type: "Warning", reason, message, about: target });
    }
  }
}

interface Warning {
  readonly reason: EventReason;
  readonly message: string;
  readonly about: readonly EventTarget[];
}

function labelsOf(departure: Departure): MetricLabels {
  return { policy: policyNameOf(departure) ?? "", cause: departure.cause };
}

function aboutBudget(budget: PodIdentity): EventTarget {
  return { kind: "PodDisruptionBudget", ...budget };
}

/** The node, and the Departure, which `kubectl describe` shows after the node is gone. */
export function departing({ name, uid, node }: Departure): readonly EventTarget[] {
  return [
    { kind: "Node", name: node.name, uid: node.uid },
    { kind: "Departure", name, uid },
  ];
}
