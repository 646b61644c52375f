/**
 * How Kubernetes' tools read plain scalars: by YAML 1.1, in which `yes` is true and `1_0` is ten,
 * with Go's prefixes of numbers, but without times such as `22:00`. Source: go.yaml.in/yaml v2.4
 * `resolve.go`, which sigs.k8s.io/yaml uses.
 */
const truths = /^(?:y|Y|yes|Yes|YES|on|On|ON)$/;
const untruths = /^(?:n|N|no|No|NO|off|Off|OFF)$/;
const octal = /^([-+]?)0[oO]?([0-7_]+)$/;
const otherBase = /^([-+]?)(0[xXbB])([\da-fA-F_]+)$/;
const decimal = /^[-+]?\d[\d_]*(?:\.[\d_]*)?$/;

const boolTag = "tag:yaml.org,2002:bool";
const intTag = "tag:yaml.org,2002:int";

/** Puts them before the tags of the package `yaml`, as its option `customTags`. */
export function withKubernetesScalars<Tag>(tags: readonly Tag[]) {
  return [...kubernetesScalars, ...tags];
}

const kubernetesScalars = [
  { tag: boolTag, default: true, test: truths, resolve: () => true },
  { tag: boolTag, default: true, test: untruths, resolve: () => false },
  {
    ...{ tag: intTag, default: true, test: octal },
    resolve: (text: string) => signed(octal.exec(text)?.[1], parseInt(digitsOf(text, octal, 2), 8)),
  },
  {
    ...{ tag: intTag, default: true, test: otherBase },
    resolve: (text: string) => {
      const [, sign, prefix = "", digits = ""] = otherBase.exec(text) ?? [];
      const value = Number(`${prefix.toLowerCase()}${digits.replaceAll("_", "")}`);
      return Number.isNaN(value) ? text : signed(sign, value);
    },
  },
  {
    ...{ tag: intTag, default: true, test: decimal },
    resolve: (text: string) => Number(text.replaceAll("_", "")),
  },
] as const;

function digitsOf(text: string, pattern: RegExp, group: number): string {
  return (pattern.exec(text)?.[group] ?? "").replaceAll("_", "");
}

function signed(sign: string | undefined, value: number): number {
  return sign === "-" ? -value : value;
}
