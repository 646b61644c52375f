/**
 * The chart's templates, generated from the manifests that kustomize installs: permissions and pods
 * are defined once, and the chart only decides where and whether they are installed. Templates that
 * only the chart has are written by hand, next to the generated ones.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { generateCrds } from "../src/config/schema/crd.ts";
import { agentPod, controllerPod, type Edit, edited, fieldIn } from "./chart-edits.ts";
import { generateChartValues } from "./chart-values.ts";
import { dashboardText } from "./dashboard.ts";
import { root } from "./source-tree.ts";

type Part = "controller" | "agent";

interface Template {
  /** Below `deploy`. */
  readonly from: string;
  /** Below `deploy/chart/templates`. */
  readonly to: string;
  /** The condition under which it is installed. */
  readonly when: string;
  readonly part: Part;
  /** In addition to those that every manifest gets. */
  readonly edits?: readonly Edit[];
}

const withController = ".Values.controller.enabled";
const withRestarts = `and ${withController} .Values.controller.restartOwner`;
const withAgent = ".Values.agent.enabled";
const withNetwork = ".Values.networkPolicy.enabled";
const fallback = '(include "lastcall.fallback" .)';
const withMarks = `and ${withAgent} (ne ${fallback} "None")`;
const withDrain = `and ${withAgent} (eq ${fallback} "Drain")`;

/** The priority class of the manifest, unless the values name one for both parts. */
function quotaOf(usual: string): Edit {
  return {
    text: `values: [${usual}]`,
    by: `values: [{{ .Values.priorityClassName | default "${usual}" | quote }}]`,
  };
}

/** A rule without sources would allow everybody. */
const metricsFrom: Edit = {
  text: "    - from: [{namespaceSelector: {}}]\n      ports: [{protocol: TCP, port: metrics}]\n",
  by: `    {{- with .Values.networkPolicy.metricsFrom }}
    - from: {{ toJson . }}
      ports: [{protocol: TCP, port: metrics}]
    {{- end }}
`,
};

const egress: Edit = {
  text: "  egress:\n",
  by: `  egress:
    {{- with .Values.networkPolicy.egress }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
`,
};

function ofPart(part: Part, when: string, files: Readonly<Record<string, string>>) {
  return Object.entries(files).map(([from, to]): Template => ({ from, to, when, part }));
}

const templates: readonly Template[] = [
  ...ofPart("controller", withController, {
    "base/rbac.yaml": "controller-rbac.yaml",
    "base/users.yaml": "user-roles.yaml",
    "base/admission.yaml": "controller-admission.yaml",
    "base/placeholder-priority.yaml": "placeholder-priority.yaml",
  }),
  {
    ...{ from: "base/quota.yaml", to: "controller-quota.yaml", when: withController },
    ...{ part: "controller", edits: [quotaOf("system-cluster-critical")] },
  },
  {
    ...{ from: "base/controller.yaml", to: "controller.yaml", when: withController },
    ...{ part: "controller", edits: controllerPod },
  },
  ...ofPart("controller", withRestarts, {
    "restart-owner/rbac.yaml": "restart-owner-rbac.yaml",
    "restart-owner/admission.yaml": "restart-owner-admission.yaml",
  }),
  {
    ...{ from: "network-policy/controller.yaml", to: "controller-network-policy.yaml" },
    when: `and ${withController} ${withNetwork}`,
    ...{ part: "controller", edits: [metricsFrom, egress] },
  },
  {
    ...{ from: "network-policy/agent.yaml", to: "agent-network-policy.yaml" },
    when: `and ${withAgent} ${withNetwork}`,
    ...{ part: "agent", edits: [metricsFrom] },
  },
  ...ofPart("agent", withAgent, {
    "agent/rbac.yaml": "agent-rbac.yaml",
    "agent/admission.yaml": "agent-admission.yaml",
  }),
  {
    ...{ from: "agent/quota.yaml", to: "agent-quota.yaml", when: withAgent },
    ...{ part: "agent", edits: [quotaOf("system-node-critical")] },
  },
  {
    ...{ from: "agent/daemonset.yaml", to: "agent.yaml", when: withAgent },
    ...{ part: "agent", edits: agentPod },
  },
  ...ofPart("agent", withMarks, {
    "agent-fallback/cordon/rbac.yaml": "fallback-cordon-rbac.yaml",
    "agent-fallback/cordon/admission.yaml": "fallback-cordon-admission.yaml",
  }),
  ...ofPart("agent", withDrain, {
    "agent-fallback/drain/rbac.yaml": "fallback-drain-rbac.yaml",
    "agent-fallback/drain/admission.yaml": "fallback-drain-admission.yaml",
  }),
];

const account = '{{ include "lastcall.account" . }}';
const agentAccount = '{{ include "lastcall.agentAccount" . }}';
const fullname = '{{ include "lastcall.fullname" . }}';
const namespace = "{{ .Release.Namespace }}";

/** The generated files of the chart, by path. */
export function generateChart(): ReadonlyMap<string, string> {
  const files = templates.map((template) => {
    const { from, to, when } = template;
    const documents = edited(from, manifest(from), template.edits ?? [])
      .split(/^---\n/m)
      .map((text) => documentOf(template, text));
    const notice = `{{- /* Written by \`npm run generate\` from deploy/${from}: change that one. */}}`;
    const text = `${notice}\n${settled}\n{{- if ${when} }}\n${documents.join("---\n")}{{- end }}\n`;
    return [`deploy/chart/templates/${to}`, quoted(text)] as const;
  });
  const crds = [...generateCrds()].map(
    ([path, text]) => [path.replace("deploy/", "deploy/chart/"), text] as const,
  );
  return new Map([
    ...files,
    ...crds,
    ...generateChartValues(),
    ["deploy/chart/templates/_affinity.tpl", quoted(affinities())],
    ["deploy/chart/files/alerts.yaml", manifest("prometheus/alerts.yaml")],
    ["deploy/chart/files/dashboard.json", dashboardText()],
    ["deploy/grafana/lastcall.json", dashboardText()],
  ]);
}

/** Every template starts with it, because any of them may be rendered first. */
const settled = '{{- include "lastcall.settle" . }}';

/** Quotes names: a namespace may be called 123 or true. */
function quoted(template: string): string {
  const whole =
    /: (\{\{ (?:include "lastcall\.(?:full)?name" \.|include "lastcall\.(?:a|agentA)ccount" \.|\.Release\.Namespace) )\}\}(?=[,}\n])/g;
  return template.replaceAll(whole, ": $1| quote }}");
}

function manifest(path: string): string {
  return readFileSync(join(root, "deploy", path), "utf8");
}

function documentOf(template: Template, text: string): string {
  const kind = /^kind: (\w+)$/m.exec(text)?.[1] ?? "";
  return conditional(kind, template.part, labelled(template.part, withNames(kind, text)));
}

/** The affinities of the manifests; the values add to them. */
function affinities(): string {
  const controller = fieldOf("base/controller.yaml", "      affinity:");
  const agent = fieldOf("agent/daemonset.yaml", "      affinity:");
  const notice = "{{- /* Written by `npm run generate` from deploy/base and deploy/agent. */}}";
  const parts = [
    ["lastcall.controllerAffinity", controller],
    ["lastcall.agentAffinity", agent],
  ].map(([name, text]) => `{{- define "${name}" }}\n${text}{{- end }}\n`);
  return `${notice}\n${parts.join("")}`;
}

/** Everything nested in a field of a manifest. */
function fieldOf(from: string, field: string): string {
  const text = fieldIn(manifest(from), field);
  if (text === undefined) throw new Error(`Cannot make the chart: deploy/${from} has no${field}`);
  return withNames("", text.slice(text.indexOf("\n") + 1));
}

/**
 * Replaces namespaces, accounts and names by those of the release. Names that the program itself
 * uses stay.
 */
function withNames(kind: string, text: string): string {
  const metadataName =
    kind === "ServiceAccount"
      ? text
          .replace("\n  name: lastcall-agent\n", `\n  name: ${agentAccount}\n`)
          .replace("\n  name: lastcall\n", `\n  name: ${account}\n`)
      : text;
  const subjects = metadataName
    .replace(/(- kind: ServiceAccount\n {4}name: )lastcall-agent\n/g, `$1${agentAccount}\n`)
    .replace(/(- kind: ServiceAccount\n {4}name: )lastcall\n/g, `$1${account}\n`)
    .replaceAll("serviceAccountName: lastcall-agent\n", `serviceAccountName: ${agentAccount}\n`)
    .replaceAll("serviceAccountName: lastcall\n", `serviceAccountName: ${account}\n`)
    .replaceAll("namespace: lastcall\n", `namespace: ${namespace}\n`)
    .replaceAll(
      /app\.kubernetes\.io\/name: lastcall, app\.kubernetes\.io\/component: (controller|agent)/g,
      'app.kubernetes.io/name: {{ include "lastcall.name" . }}, app.kubernetes.io/component: $1',
    );
  // The controller refers to this class by name when it creates pods.
  if (kind === "PriorityClass") return subjects;
  return subjects.replaceAll(
    /^( *(?:name|policyName): )lastcall((?:-[-a-z]+)?)$/gm,
    (_, key: string, rest: string) => `${key}${fullname}${rest}`,
  );
}

/** Puts the labels of a release into the object's own metadata. */
function labelled(part: Part, text: string): string {
  const labels = `  labels:\n    {{- include "lastcall.labels" (dict "root" $ "component" "${part}") | nindent 4 }}\n`;
  const bare = text.replace(/^ {2}labels: \{.*\}\n/m, "");
  // Labels with a meaning of their own, such as those of an aggregated role, stay.
  const kept = /^ {2}labels:\n((?: {4}.*\n)+)/m.exec(bare);
  const plain = kept === null ? bare : bare.replace(kept[0], "");
  const all = `${labels}${kept?.[1] ?? ""}`;
  return plain.replace(/^metadata:\n( {2}name: .*\n)/m, `metadata:\n$1${all}`);
}

const roles = ["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"];

function conditional(kind: string, part: Part, text: string): string {
  if (roles.includes(kind)) return `{{- if .Values.rbac.enable }}\n${text}{{- end }}\n`;
  if (kind !== "ServiceAccount") return text;
  const own = part === "agent" ? ".Values.agent.serviceAccount" : ".Values.serviceAccount";
  const helper = part === "agent" ? "agentAccountAnnotations" : "accountAnnotations";
  const annotations = `  annotations:\n    {{- . | nindent 4 }}\n`;
  const annotated = `  {{- with include "lastcall.${helper}" . }}\n${annotations}  {{- end }}\n`;
  const at = text.search(/^(# The pods|automountServiceAccountToken)/m);
  return `{{- if ${own}.create }}\n${text.slice(0, at)}${annotated}${text.slice(at)}{{- end }}\n`;
}
