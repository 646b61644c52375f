import { parseDuration } from "../core/duration.ts";
import { groupsOfPair, inShutdownOrder, type ShutdownGroup } from "../core/grace-budget.ts";
import { type Millis, millis } from "../core/time.ts";
import { LastcallError } from "../errors.ts";
import {
  describeValue,
  type Fields,
  fieldsOf,
  isFields,
  listOf,
  wholeNumberOf,
} from "./json-field.ts";
import { problemOfPair } from "./platform.ts";

/**
 * The shutdown groups of a KubeletConfiguration, or of what the kubelet's `configz` answers
 * (`{"kubeletconfig": {…}}`). Throws INPUT_INVALID for what the kubelet itself would refuse;
 * `place` names the file or the node in the sentence.
 */
export function readKubeletConfiguration(json: unknown, place: string): readonly ShutdownGroup[] {
  const outer = fieldsOf(json);
  const config = isFields(outer.kubeletconfig) ? outer.kubeletconfig : outer;
  if (config === outer && outer.kind !== "KubeletConfiguration") {
    const kind = describeValue(outer.kind);
    throw invalid(place, `its kind is ${kind}, KubeletConfiguration is wanted`);
  }
  const byPriority = listOf(config.shutdownGracePeriodByPodPriority);
  const totalMs = readPeriod({ config, field: "shutdownGracePeriod", place });
  const criticalMs = readPeriod({ config, field: "shutdownGracePeriodCriticalPods", place });
  if (byPriority.length > 0) {
    if (totalMs > 0 || criticalMs > 0) {
      throw invalid(
        place,
        "it sets shutdownGracePeriod and shutdownGracePeriodByPodPriority, one of them is wanted",
      );
    }
    return inShutdownOrder(byPriority.map((item) => readGroup(item, place)));
  }
  const problem = problemOfPair(totalMs, criticalMs);
  if (problem !== undefined) throw invalid(place, problem);
  return groupsOfPair(totalMs, criticalMs);
}

function readPeriod(options: {
  readonly config: Fields;
  readonly field: string;
  readonly place: string;
}): Millis {
  const written = options.config[options.field];
  if (written === undefined || written === null) return millis(0);
  const period = typeof written === "string" ? parseDuration(written) : undefined;
  if (period !== undefined) return period;
  const found = describeValue(written);
  throw invalid(
    options.place,
    `${options.field} is ${found}, a Go duration such as "30s" is wanted`,
  );
}

function readGroup(item: unknown, place: string): ShutdownGroup {
  const priority = wholeNumberOf(fieldsOf(item).priority);
  const seconds = wholeNumberOf(fieldsOf(item).shutdownGracePeriodSeconds);
  if (priority === undefined || seconds === undefined || seconds < 0) {
    throw invalid(
      place,
      "an entry of shutdownGracePeriodByPodPriority is not understood, whole numbers priority and shutdownGracePeriodSeconds from 0 on are wanted",
    );
  }
  return { priority, seconds };
}

function invalid(place: string, problem: string): LastcallError {
  return new LastcallError(
    "INPUT_INVALID",
    `Cannot read the kubelet's budget from ${place}: ${problem}`,
  );
}
