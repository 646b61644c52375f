/** Values of the chart combined at random, and what the real Helm makes of them. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { DaemonSet, Deployment } from "kubernetes-types/apps/v1.js";
import type { PodSpec } from "kubernetes-types/core/v1.js";
import { expect } from "vitest";
import { stringify } from "yaml";
import { fieldNameOf } from "../../src/config/options/option.ts";
import {
  type FlagValue,
  type OptionsFile,
  resolveOptions,
} from "../../src/config/options/resolve-options.ts";
import type { Rng } from "../../src/core/chance/chance.ts";
import { chart, type HelmResult, helm, type Manifest, manifestsIn, oldest } from "./helm.ts";

/** How many combinations are tried at least. */
export const samples = 40;

/** Values by their paths, such as `agent.enabled`. */
export type Values = Readonly<Record<string, unknown>>;

/** Each value with what it may be; undefined: not given. */
export type Choices = Readonly<Record<string, readonly unknown[]>>;

function drawValues(choices: Choices, draw: Rng): Values {
  const drawn = Object.entries(choices).map(([path, some]) => [
    path,
    some[Math.floor(draw() * some.length)],
  ]);
  return Object.fromEntries(drawn.filter(([, value]) => value !== undefined));
}

/** `{agent: {enabled: true}}` for `agent.enabled`. */
function nested(values: Values): object {
  const all: Record<string, unknown> = {};
  for (const [path, value] of Object.entries(values)) {
    const names = path.split(".");
    const last = names.pop() as string;
    let at = all;
    for (const name of names) {
      const found = (at[name] ?? {}) as Record<string, unknown>;
      at[name] = found;
      at = found;
    }
    at[last] = value;
  }
  return all;
}

/** Renders the chart with the values, which are written into the folder. */
export function renderedIn(
  home: string,
  { values, namespace }: { readonly values: Values; readonly namespace: string },
): HelmResult {
  const file = join(home, "values.yaml");
  writeFileSync(file, stringify(nested(values)));
  const flags = ["--namespace", namespace, "--kube-version", oldest, "--values", file];
  return helm(["template", "lastcall", chart, ...flags], { home });
}

export type Objects = readonly Manifest[];

export interface Part {
  readonly pod: PodSpec;
  readonly options: Readonly<Record<string, unknown>>;
}

/** A part's pod, and the options that the program in it has, with what its file of options sets. */
export function partOf(
  objects: Objects,
  kind: "Deployment" | "DaemonSet",
  file?: OptionsFile,
): Part | undefined {
  const found = objects.find((one) => one.kind === kind) as Deployment | DaemonSet | undefined;
  const pod = found?.spec?.template.spec;
  if (pod === undefined) return undefined;
  const [container] = pod.containers;
  const [command, ...args] = container?.args ?? [];
  const flags = args.map((one): [string, FlagValue] => {
    const [, name = "", value = ""] = /^--([^=]+)=(.*)$/s.exec(one) ?? [];
    return [fieldNameOf(name), value === "true" ? true : value === "false" ? false : value];
  });
  const env = Object.fromEntries(
    (container?.env ?? []).map(({ name, value }) => [name, value ?? "from-the-pod"]),
  );
  const sources = { flags: Object.fromEntries(flags), env: { ...env, ...addressIn(env) }, file };
  return { pod, options: resolveOptions(command === "run" ? "run" : "agent", sources) };
}

/** The kubelet puts the node's address in. */
function addressIn(env: Readonly<Record<string, string>>) {
  const { LASTCALL_METRICS_ADDRESS: address } = env;
  return address && { LASTCALL_METRICS_ADDRESS: address.replace("$(NODE_IP)", "10.0.0.1") };
}

export function portOf(address: unknown): number {
  return Number(/(\d+)$/.exec(String(address))?.[1]);
}

/** What holds of every installation, whatever the values are. */
export type Rule = (
  objects: Objects,
  parts: { readonly controller?: Part; readonly agent?: Part },
) => boolean;

export type Rules = Readonly<Record<string, Rule>>;

export function brokenRules(rules: Rules, objects: Objects): readonly string[] {
  const [controller, agent] = [partOf(objects, "Deployment"), partOf(objects, "DaemonSet")];
  const parts = { ...(controller && { controller }), ...(agent && { agent }) };
  return Object.entries(rules).flatMap(([name, holds]) => (holds(objects, parts) ? [] : name));
}

export function objectsIn(text: string): Objects {
  return text.split(/^---\n/m).flatMap((document) => [...manifestsIn(document).values()]);
}

/**
 * Expects that each combination is refused with a sentence, or keeps every rule. Returns how many
 * were rendered, and which values were refused.
 */
export function tryCombinations(how: {
  readonly choices: Choices;
  readonly rules: Rules;
  readonly made: (values: Values) => HelmResult;
  readonly draw: Rng;
}): { readonly rendered: number; readonly refused: ReadonlySet<string> } {
  const refused = new Set<string>();
  let rendered = 0;
  // Of most combinations one value is refused, so some seeds render few of them.
  const isEnough = (sample: number) => sample >= samples && rendered > samples / 12;
  for (let sample = 0; sample < 4 * samples && !isEnough(sample); sample += 1) {
    const values = drawValues(how.choices, how.draw);
    const { stdout, stderr, code } = how.made(values);
    if (code === 0) {
      rendered += 1;
      const broken = brokenRules(how.rules, objectsIn(stdout));
      expect({ values, broken }).toEqual({ values, broken: [] });
    } else {
      expect({ values, stderr }).toMatchObject({ stderr: expect.stringContaining("expected") });
      // Helm names the template and its line in parentheses before the value.
      refused.add(/\): ([^:]+): /.exec(stderr)?.[1] ?? "");
    }
  }
  return { rendered, refused };
}
