import { criticalPriority, grantGrace } from "../core/drain-plan/drain-order.ts";
import { LastcallError } from "../errors.ts";
import { type SpotScope, spotKeys, spotPairs } from "./objects/spot-scope.ts";
import type { Platform } from "./platform.ts";
import { ignoreAnnotation } from "./rule-list.ts";

export interface AdmissionOptions {
  /**
   * Warn accepts the object and warns the user; Deny rejects it; Audit adds an annotation to the
   * audit log.
   */
  readonly action: "Warn" | "Deny" | "Audit";
  /** The grace that a regular and a critical pod get at shutdown, in whole seconds. */
  readonly regularSeconds: number;
  readonly criticalSeconds: number;
  readonly scope: SpotScope;
  /** The namespace of the parameters. */
  readonly namespace: string;
}

/**
 * The grace that regular and critical pods get on a platform; groups in between are not
 * distinguished.
 */
export function admissionBudget({
  groups,
}: Platform): Pick<AdmissionOptions, "regularSeconds" | "criticalSeconds"> {
  const given = (podPriority: number) =>
    grantGrace({ wantedSeconds: Number.MAX_SAFE_INTEGER, podPriority, groups }).grantedSeconds;
  return { regularSeconds: given(0), criticalSeconds: given(criticalPriority) };
}

/**
 * Where each group of kinds has its pod template; CEL checks types by kind, so each has its own
 * policy.
 */
const shapes = [
  {
    name: "templates",
    podSpec: ".spec.template.spec",
    rules: [
      ["apps", "v1", "deployments, statefulsets, daemonsets, replicasets"],
      ["batch", "v1", "jobs"],
      ["", "v1", "replicationcontrollers"],
    ],
  },
  {
    name: "cronjobs",
    podSpec: ".spec.jobTemplate.spec.template.spec",
    rules: [["batch", "v1", "cronjobs"]],
  },
  { name: "pods", podSpec: ".spec", rules: [["", "v1", "pods"]] },
] as const;

/**
 * The YAML of a ValidatingAdmissionPolicy (with its binding) that enforces the rule `grace-cut` in
 * the API server, and of the ConfigMap with the budget. A grace period of exactly 30 s passes: the
 * server sets that default before admission, so nobody may have chosen it. Objects that another
 * object owns pass as well, since their owner was checked; and so does an update that does not
 * change the pods, or Deny would keep controllers from updating existing objects. Source:
 * Kubernetes "Validating Admission Policy" (GA 1.30).
 */
export function admissionManifests(options: AdmissionOptions): string {
  for (const count of [options.regularSeconds, options.criticalSeconds]) {
    if (Number.isSafeInteger(count) && count >= 0) continue;
    throw new LastcallError(
      "USAGE",
      `Cannot write the admission policy: the budget is ${count} s, expected whole seconds from 0 on`,
    );
  }
  const policies = shapes.flatMap((shape) => [
    policy(shape, options),
    binding(shape.name, options),
  ]);
  return [parameters(options), ...policies].join("---\n");
}

function parameters({ namespace, regularSeconds, criticalSeconds }: AdmissionOptions): string {
  return `# What pods really get when a Spot node shuts down, in seconds.
apiVersion: v1
kind: ConfigMap
metadata:
  name: lastcall-grace-budget
  namespace: ${namespace}
data:
  regularSeconds: "${regularSeconds}"
  criticalSeconds: "${criticalSeconds}"
`;
}

function policy(shape: (typeof shapes)[number], options: AdmissionOptions): string {
  const rules = shape.rules.map(
    ([group, version, resources]) => `    - apiGroups: ["${group}"]
      apiVersions: [${version}]
      operations: [CREATE, UPDATE]
      resources: [${resources}]`,
  );
  return `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: lastcall-grace-cut-${shape.name}
spec:
  failurePolicy: Ignore
  paramKind: {apiVersion: v1, kind: ConfigMap}
  matchConstraints:
    resourceRules:
${rules.join("\n")}
  matchConditions:
  - name: is-not-owned
    expression: "!has(object.metadata.ownerReferences) || !object.metadata.ownerReferences.exists(o, has(o.controller) && o.controller)"
  - name: asks-anew
    expression: "request.operation == 'CREATE' || object${shape.podSpec} != oldObject${shape.podSpec}"
  variables:
  - name: pod
    expression: object${shape.podSpec}
  - name: critical
    expression: >-
      (has(variables.pod.priority) && variables.pod.priority >= ${criticalPriority}) ||
      (has(variables.pod.priorityClassName) &&
      variables.pod.priorityClassName in ['system-cluster-critical', 'system-node-critical'])
  - name: budget
    expression: "int(variables.critical ? params.data.criticalSeconds : params.data.regularSeconds)"
  - name: wanted
    expression: "has(variables.pod.terminationGracePeriodSeconds) ? variables.pod.terminationGracePeriodSeconds : 30"
  - name: spot
    expression: >-
      ${options.scope === "Named" ? namesSpotInCel() : maySpot()}
  - name: ignored
    expression: >-
      ${metadataOf(shape.podSpec).map(ignores).join(" ||\n      ")}
  validations:
  - expression: "!variables.spot || variables.ignored || variables.wanted == 30 || variables.wanted <= variables.budget"
    messageExpression: >-
      'asks for ' + string(variables.wanted) + ' s of terminationGracePeriodSeconds, and a Spot node gives '
      + string(variables.budget) + ' s (lastcall audit: grace-cut)'
    reason: Invalid
`;
}

/** The object's own metadata, and that of its pods if that is another. */
function metadataOf(podSpec: string): readonly string[] {
  const own = "object.metadata";
  const ofPods = `object${podSpec.replace(/\.spec$/, ".metadata")}`;
  return ofPods === own ? [own] : [own, ofPods];
}

/** As `ignoredRules` reads the annotation: an entry for the rule, with a reason. */
function ignores(metadata: string): string {
  const entry = String.raw`(^|[;\n])\s*grace-cut[ \t]*:[ \t]*[^\s;]`;
  const annotations = `${metadata}.annotations`;
  return `(has(${metadata}) && has(${annotations}) && '${ignoreAnnotation}' in ${annotations}
      && ${annotations}['${ignoreAnnotation}'].matches(r'${entry}'))`;
}

function binding(name: string, { action, namespace }: AdmissionOptions): string {
  return `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: lastcall-grace-cut-${name}
spec:
  policyName: lastcall-grace-cut-${name}
  validationActions: [${action}]
  paramRef:
    name: lastcall-grace-budget
    namespace: ${namespace}
    parameterNotFoundAction: Allow
`;
}

function keyList(): string {
  return `[${spotKeys.map((key) => `'${key}'`).join(", ")}]`;
}

function pairs(): string {
  return `[${spotPairs.map((pair) => `'${pair}'`).join(", ")}]`;
}

/** The terms of required node affinity, for a CEL macro over them. */
const terms =
  "variables.pod.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms";
const hasTerms = `has(variables.pod.affinity) && has(variables.pod.affinity.nodeAffinity)
      && has(variables.pod.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution)`;

/** As `namesSpot` of the audit. */
function namesSpotInCel(): string {
  return `(has(variables.pod.nodeSelector) && variables.pod.nodeSelector.exists(k,
      (k + '=' + variables.pod.nodeSelector[k]) in ${pairs()}))
      || (has(variables.pod.tolerations) && variables.pod.tolerations.exists(t,
      has(t.key) && t.key in ${keyList()}))
      || (${hasTerms}
      && ${terms}.exists(t, has(t.matchExpressions) && t.matchExpressions.exists(e,
      e.key in ${keyList()} && e.operator == 'In'
      && e.values.exists(v, (e.key + '=' + v) in ${pairs()}))))`;
}

/**
 * Excludes Spot nodes: a selector with another value of a Spot label, or affinity that excludes
 * Spot in each term.
 */
function maySpot(): string {
  return `!((has(variables.pod.nodeSelector) && variables.pod.nodeSelector.exists(k,
      k in ${keyList()} && !((k + '=' + variables.pod.nodeSelector[k]) in ${pairs()})))
      || (${hasTerms}
      && ${terms}.all(t, has(t.matchExpressions) && t.matchExpressions.exists(e,
      e.key in ${keyList()} && (e.operator == 'DoesNotExist'
      || (e.operator == 'NotIn' && e.values.exists(v, (e.key + '=' + v) in ${pairs()}))
      || (e.operator == 'In' && !e.values.exists(v, (e.key + '=' + v) in ${pairs()})))))))`;
}
