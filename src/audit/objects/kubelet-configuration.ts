import {
  groupsOfPair,
  inShutdownOrder,
  type ShutdownGroup,
} from "../../core/drain-plan/grace-budget.ts";
import {
  describeValue,
  type Fields,
  fieldsOf,
  isFields,
  wholeNumberOf,
} from "../../core/json/json-field.ts";
import { type Millis, millis, parseDuration } from "../../core/time/time.ts";
import { LastcallError } from "../../errors.ts";
import { problemOfPair } from "../platform.ts";
import type { FieldPointer } from "./manifest.ts";

/** How a sentence names the place of a field: `kubelet.yaml:7`, or the kubelet of a node. */
export type PlaceOfField = (field: FieldPointer) => string;

/**
 * The shutdown groups of a KubeletConfiguration, or of what the kubelet's `configz` answers
 * (`{"kubeletconfig": {…}}`). Throws INPUT_INVALID for what the kubelet itself would refuse; but
 * periods that a feature gate turns off are no grace to anybody, whether it refuses them or not.
 */
export function readKubeletConfiguration(
  json: unknown,
  place: PlaceOfField,
): readonly ShutdownGroup[] {
  const outer = fieldsOf(json);
  const isAnswer = isFields(outer.kubeletconfig);
  const config = isAnswer ? fieldsOf(outer.kubeletconfig) : outer;
  const placed = { config, place: isAnswer ? within("kubeletconfig", place) : place };
  if (!isAnswer && outer.kind !== "KubeletConfiguration") {
    const kind = describeValue(outer.kind);
    throw invalid(place(["kind"]), `its kind is ${kind}, expected KubeletConfiguration`);
  }
  const totalMs = readPeriod("shutdownGracePeriod", placed);
  const criticalMs = readPeriod("shutdownGracePeriodCriticalPods", placed);
  const byPriority = readGroups(placed);
  if (byPriority.length > 0 && (totalMs > 0 || criticalMs > 0)) {
    throw invalid(
      placed.place([byPriorityField]),
      "it sets shutdownGracePeriod and shutdownGracePeriodByPodPriority, expected one of them",
    );
  }
  const problem = problemOfPair(totalMs, criticalMs);
  if (problem !== undefined) throw invalid(placed.place(["shutdownGracePeriod"]), problem);
  if (!isEnabled("GracefulNodeShutdown", placed)) return [];
  if (byPriority.length === 0) return groupsOfPair(totalMs, criticalMs);
  return isEnabled("GracefulNodeShutdownBasedOnPodPriority", placed) ? byPriority : [];
}

interface PlacedConfiguration {
  readonly config: Fields;
  readonly place: PlaceOfField;
}

function within(field: string, place: PlaceOfField): PlaceOfField {
  return (pointer) => place([field, ...pointer]);
}

/**
 * Both gates have been in beta, and on, since Kubernetes 1.21 and 1.24, so that `AllBeta: false`
 * turns them off as well. Source: kubernetes 1.36 pkg/features/kube_features.go.
 */
function isEnabled(gate: string, { config, place }: PlacedConfiguration): boolean {
  const gates = fieldsOf(config.featureGates);
  const [name, written] =
    gates[gate] === undefined ? ["AllBeta", gates.AllBeta] : [gate, gates[gate]];
  if (written === undefined) return true;
  if (typeof written === "boolean") return written;
  const found = describeValue(written);
  throw invalid(
    place(["featureGates", name]),
    `featureGates.${name} is ${found}, expected true or false`,
  );
}

function readPeriod(field: string, { config, place }: PlacedConfiguration): Millis {
  const written = config[field];
  if (written === undefined || written === null) return millis(0);
  const period = typeof written === "string" ? parseDuration(written) : undefined;
  if (period !== undefined) return period;
  const found = describeValue(written);
  throw invalid(place([field]), `${field} is ${found}, expected a Go duration such as "30s"`);
}

const byPriorityField = "shutdownGracePeriodByPodPriority";

function readGroups({ config, place }: PlacedConfiguration): readonly ShutdownGroup[] {
  const written = config[byPriorityField] ?? [];
  if (!Array.isArray(written)) {
    const found = describeValue(written);
    throw invalid(place([byPriorityField]), `${byPriorityField} is ${found}, expected a list`);
  }
  const groups = written.map((item: unknown, index) => {
    const priority = wholeNumberOf(fieldsOf(item).priority);
    const seconds = wholeNumberOf(fieldsOf(item).shutdownGracePeriodSeconds);
    if (priority !== undefined && seconds !== undefined && seconds >= 0) {
      return { priority, seconds };
    }
    throw invalid(
      place([byPriorityField, index]),
      `${byPriorityField}[${index}] is not understood, expected whole numbers priority and shutdownGracePeriodSeconds from 0 on`,
    );
  });
  return inShutdownOrder(groups);
}

function invalid(place: string, problem: string): LastcallError {
  return new LastcallError(
    "INPUT_INVALID",
    `Cannot read the kubelet's budget from ${place}: ${problem}`,
  );
}
