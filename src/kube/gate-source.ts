import type { GateSource } from "../contracts/gate-source.ts";
import type { KubeApi, KubeObject } from "../contracts/kube-api.ts";
import type { LabelRequirement, LabelSelector } from "../core/label-selector.ts";
import type { Gates, Policy } from "../core/policy.ts";
import type { GateAnswer } from "../core/snapshot.ts";
import { listAll } from "./list.ts";
import { podsPath } from "./paths.ts";

export interface KubeGateSourceOptions {
  readonly api: KubeApi;
  readonly firingAlerts: (
    question: NonNullable<Gates["alerts"]>,
    signal: AbortSignal,
  ) => Promise<readonly string[]>;
  readonly onTrouble: (error: unknown) => void;
}

/** Asks Alertmanager and lists blocking pods, for the policies that have such gates. */
export class KubeGateSource implements GateSource {
  readonly #options: KubeGateSourceOptions;

  constructor(options: KubeGateSourceOptions) {
    this.#options = options;
  }

  async ask(
    policies: readonly Policy[],
    signal: AbortSignal,
  ): Promise<Readonly<Record<string, GateAnswer>>> {
    const gated = policies.filter(
      ({ gates }) => gates.alerts !== undefined || gates.blockingPods.length > 0,
    );
    const answers = await Promise.all(
      gated.map(async ({ name, gates }) => [name, await this.#answer(gates, signal)] as const),
    );
    return Object.fromEntries(answers);
  }

  async #answer(gates: Gates, signal: AbortSignal): Promise<GateAnswer> {
    const [alerts, blockingPods] = await Promise.all([
      gates.alerts === undefined
        ? []
        : this.#options.firingAlerts(gates.alerts, signal).catch(this.#unknown),
      this.#blockingPods(gates.blockingPods).catch(this.#unknown),
    ]);
    return { alerts, blockingPods };
  }

  /** Fail closed: what could not be asked counts as a closed gate. */
  readonly #unknown = (error: unknown): "Unknown" => {
    this.#options.onTrouble(error);
    return "Unknown";
  };

  async #blockingPods(selectors: readonly LabelSelector[]): Promise<ReadonlyMap<string, string>> {
    const lists = await Promise.all(
      selectors.map((selector) =>
        listAll(this.#options.api, podsPath, {
          labelSelector: selectorText(selector),
          fieldSelector: "status.phase!=Succeeded,status.phase!=Failed",
        }),
      ),
    );
    return new Map(lists.flat().flatMap(placeOf));
  }
}

/** A node and the pod's full name; nothing where it waits for a node. */
function placeOf({ metadata, spec }: KubeObject): readonly (readonly [string, string])[] {
  const node = (spec as { nodeName?: string } | undefined)?.nodeName;
  if (node === undefined) return [];
  return [[node, `${metadata?.namespace ?? ""}/${metadata?.name ?? ""}`]];
}

/** The query form of a label selector: `a=b,c in (d,e),!f`. */
function selectorText(selector: LabelSelector): string {
  const exact = Object.entries(selector.matchLabels ?? {}).map(([key, value]) => `${key}=${value}`);
  const expressions = (selector.matchExpressions ?? []).map(requirementText);
  return [...exact, ...expressions].join(",");
}

function requirementText({ key, operator, values = [] }: LabelRequirement): string {
  switch (operator) {
    case "Exists":
      return key;
    case "DoesNotExist":
      return `!${key}`;
    case "In":
    case "NotIn":
      return `${key} ${operator.toLowerCase()} (${values.join(",")})`;
    case "Gt":
      return `${key}>${values[0]}`;
    case "Lt":
      return `${key}<${values[0]}`;
  }
}
