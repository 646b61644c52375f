/** The factor of each suffix. Source: apimachinery `pkg/api/resource/suffix.go`. */
const factors: Readonly<Record<string, number>> = {
  n: 1e-9,
  u: 1e-6,
  m: 1e-3,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  P: 1e15,
  E: 1e18,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
  Pi: 2 ** 50,
  Ei: 2 ** 60,
};

const pattern = /^([+-]?(?:\d+\.?\d*|\.\d+))(?:[eE]([+-]?\d+)|([numkMGTPE]|[KMGTPE]i))?$/;

/**
 * Reads a Kubernetes quantity such as `250m`, `4`, `1.5Gi` or `12e6`; undefined for anything else.
 */
export function parseQuantity(value: unknown): number | undefined {
  if (typeof value === "number") return Number.isFinite(value) ? value : undefined;
  const match = typeof value === "string" ? pattern.exec(value) : null;
  if (match === null) return undefined;
  const [, digits, exponent, suffix] = match;
  if (exponent !== undefined) return Number(`${digits}e${exponent}`);
  return Number(digits) * (suffix === undefined ? 1 : (factors[suffix] ?? 0));
}

/** Writes an amount as a quantity, rounded up: cores as `250m`, everything else as an integer. */
export function formatQuantity(resource: string, amount: number): string {
  // Sums of fractions of a core carry binary rounding errors, which must not round up.
  const milli = Math.ceil(Math.round(amount * 1e6) / 1e3);
  return resource === "cpu" ? `${milli}m` : String(Math.ceil(amount));
}
