const suffixes: Readonly<Record<string, number>> = {
  "": 1,
  m: 1e-3,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
};

const known = new Map<string, number>();

/** Reads a Kubernetes quantity such as `250m`, `4` or `1.5Gi`; 0 for what is none. */
export function parseQuantity(text: string | undefined): number {
  if (text === undefined) return 0;
  const before = known.get(text);
  if (before !== undefined) return before;
  const match = /^(\d+(?:\.\d+)?)(m|k|M|G|T|Ki|Mi|Gi|Ti)?$/.exec(String(text));
  const value = match ? Number(match[1]) * (suffixes[match[2] ?? ""] ?? 0) : 0;
  if (known.size < 10_000) known.set(text, value);
  return value;
}
