/** Which way a share of pods is rounded to whole ones. */
export type Rounding = "Up" | "Down";

/**
 * A count, or a percentage such as `25%` of `total`.
 * Source: k8s.io/apimachinery `pkg/util/intstr`, GetScaledValueFromIntOrPercent.
 */
export function scaledValue(
  value: number | string,
  of: { readonly total: number; readonly rounding: Rounding },
): number {
  if (typeof value === "number") return value;
  const exact = (Number.parseInt(value, 10) * of.total) / 100;
  return of.rounding === "Up" ? Math.ceil(exact) : Math.floor(exact);
}
