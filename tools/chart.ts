/**
 * The chart's templates, made from the manifests that kustomize installs: what is granted and what
 * runs is written once, and the chart says where and whether.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { generateCrds } from "../src/config/crd.ts";
import { root } from "./source-tree.ts";

interface Template {
  /** Below `deploy`. */
  readonly from: string;
  /** Below `deploy/chart/templates`. */
  readonly to: string;
  /** When it is installed at all. */
  readonly when: string;
}

const withController = ".Values.controller.enabled";
const withRestarts = `and ${withController} .Values.controller.restartOwner`;
const withAgent = ".Values.agent.enabled";
const withNetwork = ".Values.networkPolicy.enabled";
const withMarks = `and ${withAgent} (ne .Values.agent.fallback "None")`;
const withDrain = `and ${withAgent} (eq .Values.agent.fallback "Drain")`;

const templates: readonly Template[] = [
  { from: "base/rbac.yaml", to: "controller-rbac.yaml", when: withController },
  { from: "base/admission.yaml", to: "controller-admission.yaml", when: withController },
  { from: "base/quota.yaml", to: "controller-quota.yaml", when: withController },
  { from: "base/controller.yaml", to: "controller.yaml", when: withController },
  { from: "base/placeholder-priority.yaml", to: "placeholder-priority.yaml", when: withController },
  { from: "restart-owner/rbac.yaml", to: "restart-owner-rbac.yaml", when: withRestarts },
  {
    ...{ from: "restart-owner/admission.yaml", to: "restart-owner-admission.yaml" },
    when: withRestarts,
  },
  {
    ...{ from: "network-policy/controller.yaml", to: "controller-network-policy.yaml" },
    when: `and ${withController} ${withNetwork}`,
  },
  {
    ...{ from: "network-policy/agent.yaml", to: "agent-network-policy.yaml" },
    when: `and ${withAgent} ${withNetwork}`,
  },
  { from: "agent/rbac.yaml", to: "agent-rbac.yaml", when: withAgent },
  { from: "agent/admission.yaml", to: "agent-admission.yaml", when: withAgent },
  { from: "agent/quota.yaml", to: "agent-quota.yaml", when: withAgent },
  { from: "agent/daemonset.yaml", to: "agent.yaml", when: withAgent },
  { from: "agent-fallback/cordon/rbac.yaml", to: "fallback-cordon-rbac.yaml", when: withMarks },
  {
    ...{ from: "agent-fallback/cordon/admission.yaml", to: "fallback-cordon-admission.yaml" },
    when: withMarks,
  },
  { from: "agent-fallback/drain/rbac.yaml", to: "fallback-drain-rbac.yaml", when: withDrain },
  {
    ...{ from: "agent-fallback/drain/admission.yaml", to: "fallback-drain-admission.yaml" },
    when: withDrain,
  },
];

interface Replacement {
  /** In the manifest, at least once where it is asked for. */
  readonly text: string;
  readonly by: string;
  /** The manifests that must hold it; in others it is replaced where it stands. */
  readonly of?: string;
}

const namespace = "{{ .Release.Namespace }}";

/** The class of the manifest, unless the values name one for both. */
function priorityClass(usual: string): string {
  return `{{ .Values.priorityClassName | default "${usual}" }}`;
}

/** Who may scrape, and where the controller may go beside what the manifest names. */
const networkValues: readonly Replacement[] = [
  {
    text: "    - from: [{namespaceSelector: {}}]\n",
    by: "    - from: {{ toJson .Values.networkPolicy.metricsFrom }}\n",
  },
  {
    ...{ text: "  egress:\n", of: "network-policy/controller.yaml" },
    by: `  egress:
    {{- with .Values.networkPolicy.egress }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
`,
  },
];

/** Pods of a class, and the quota for it. */
function classOf(usual: string, of: { readonly pods: string; readonly quota: string }) {
  return [
    {
      ...{ text: `priorityClassName: ${usual}\n`, of: of.pods },
      by: `priorityClassName: ${priorityClass(usual)}\n`,
    },
    { text: `values: [${usual}]`, by: `values: [${priorityClass(usual)}]`, of: of.quota },
  ];
}

const replacements: readonly Replacement[] = [
  { text: "namespace: lastcall\n", by: `namespace: ${namespace}\n` },
  { text: "system:serviceaccount:lastcall:", by: `system:serviceaccount:${namespace}:` },
  {
    ...{ text: "image: lastcall:0.1.0\n", of: "base/controller.yaml" },
    by: "image: {{ .Values.controller.image | quote }}\n",
  },
  ...classOf("system-cluster-critical", {
    ...{ pods: "base/controller.yaml", quota: "base/quota.yaml" },
  }),
  ...networkValues,
  ...classOf("system-node-critical", { pods: "agent/daemonset.yaml", quota: "agent/quota.yaml" }),
  {
    ...{ text: "replicas: 2\n", of: "base/controller.yaml" },
    by: "replicas: {{ .Values.controller.replicas }}\n",
  },
  {
    ...{ text: "image: lastcall-agent:0.1.0\n", of: "agent/daemonset.yaml" },
    by: "image: {{ .Values.agent.image | quote }}\n",
  },
  {
    ...{ text: "          ports:\n", of: "base/controller.yaml" },
    by: `${more("controller")}          ports:\n`,
  },
  {
    ...{ text: "          ports:\n", of: "agent/daemonset.yaml" },
    by: `            {{- if ne .Values.agent.fallback "None" }}
            - {name: LASTCALL_FALLBACK, value: {{ .Values.agent.fallback }}}
            {{- end }}
${more("agent")}          ports:\n`,
  },
];

/** Options as the container's environment. */
function more(part: "controller" | "agent"): string {
  return `            {{- with .Values.${part}.env }}
            {{- toYaml . | nindent 12 }}
            {{- end }}
`;
}

/** The files of the chart that are not written by hand, by their paths. */
export function generateChart(): ReadonlyMap<string, string> {
  const files = templates.map(({ from, to, when }) => {
    const body = replaced(from, manifest(from));
    const text = `{{- /* Written by \`npm run generate\` from deploy/${from}: change that one. */}}\n{{- if ${when} }}\n${body}{{- end }}\n`;
    return [`deploy/chart/templates/${to}`, text] as const;
  });
  const crds = [...generateCrds()].flatMap(([path, text]) => {
    const name = /^deploy\/crds\/(.+\.dev\.yaml)$/.exec(path)?.[1];
    return name === undefined ? [] : [[`deploy/chart/crds/${name}`, text] as const];
  });
  return new Map([...files, ...crds]);
}

function manifest(path: string): string {
  return readFileSync(join(root, "deploy", path), "utf8");
}

function replaced(from: string, text: string): string {
  let result = text;
  for (const { text: found, by, of } of replacements) {
    if (of !== undefined && of !== from) continue;
    if (of !== undefined && !result.includes(found)) {
      throw new Error(
        `Cannot make the chart: deploy/${from} has no "${found.trim()}", expected one`,
      );
    }
    result = result.replaceAll(found, by);
  }
  return result;
}
