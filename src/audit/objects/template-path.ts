import { LastcallError } from "../../errors.ts";

/** A kind of custom resource whose controller makes pods, and where it keeps their template. */
export interface TemplatePath {
  readonly kind: string;
  /** Absent: that of any custom resource of the kind. */
  readonly group?: string | undefined;
  readonly path: readonly string[];
}

/**
 * Known without being named. A Rollout may point to a Deployment instead (`workloadRef`): it has no
 * template then, and the Deployment is judged. Source: argoproj.io/v1alpha1,
 * rollouts/v1alpha1/types.go.
 */
export const knownTemplatePaths: readonly TemplatePath[] = [
  { kind: "Rollout", group: "argoproj.io", path: ["spec", "template"] },
];

const example = "Rollout.argoproj.io=spec.template";

/** Reads `KIND.GROUP=PATH` or `KIND=PATH`. Throws USAGE, naming what is expected. */
export function parseTemplatePath(text: string): TemplatePath {
  const [, kind, group, path] = /^([A-Z]\w*)(?:\.([\w.-]+))?=\.?(.+)$/.exec(text) ?? [];
  const steps = path?.split(".") ?? [];
  if (kind === undefined || steps.length === 0 || !steps.every(isFieldName)) {
    throw new LastcallError(
      "USAGE",
      `Cannot read --template-path ${text}: expected KIND.GROUP=PATH, such as ${example}`,
    );
  }
  return { kind, group, path: steps };
}

function isFieldName(step: string): boolean {
  return /^[A-Za-z][\w-]*$/.test(step);
}
