import { fieldsOf, valueAt, wholeNumberOf } from "../core/json/json-field.ts";
import { describeValue, nameOf } from "../core/json/shown-value.ts";
import { type Manifest, placeOf } from "./objects/manifest.ts";

/** The classes that every cluster has. Source: kubernetes pkg/apis/scheduling/v1/helpers.go. */
const builtInClasses = [
  ["system-cluster-critical", 2_000_000_000],
  ["system-node-critical", 2_000_001_000],
] as const;

export interface PriorityClasses {
  readonly values: ReadonlyMap<string, number>;
  /** The priority of a pod that names no class: the global default's, else 0. */
  readonly whenNone: number;
  readonly problems: readonly string[];
}

/** Collects the PriorityClasses of the input, the built-in ones among them. */
export function readPriorityClasses(manifests: readonly Manifest[]): PriorityClasses {
  const values = new Map<string, number>(builtInClasses);
  const problems: string[] = [];
  let whenNone = 0;
  for (const manifest of manifests) {
    if (manifest.kind !== "PriorityClass" || manifest.group !== "scheduling.k8s.io") continue;
    const written = fieldsOf(manifest.json).value;
    const value = wholeNumberOf(written);
    if (value === undefined) {
      problems.push(
        `Cannot audit ${placeOf(manifest, ["value"])}: value is ${describeValue(written)}, expected a whole number`,
      );
      continue;
    }
    values.set(manifest.name, value);
    if (fieldsOf(manifest.json).globalDefault === true) whenNone = value;
  }
  return { values, whenNone, problems };
}

/**
 * The priority of a pod as the admission plugin would resolve it: the number that is there, else
 * its class, else the global default. A class that the input does not hold counts as 0.
 */
export function resolvePriority(
  podSpec: unknown,
  classes: PriorityClasses,
): { readonly priority: number; readonly unknownClass?: string } {
  const written = wholeNumberOf(valueAt(podSpec, ["priority"]));
  if (written !== undefined) return { priority: written };
  const className = valueAt(podSpec, ["priorityClassName"]);
  if (typeof className !== "string" || className === "") return { priority: classes.whenNone };
  const priority = classes.values.get(className);
  const unknownClass = nameOf(className) ?? "";
  return priority === undefined ? { priority: 0, unknownClass } : { priority };
}
