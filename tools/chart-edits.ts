/** How the pod manifests of both parts become templates. */

/**
 * A text of a manifest, or a field with everything nested in it, and its replacement in the
 * template.
 */
export type Edit =
  | { readonly text: string; readonly by: string }
  | { readonly field: string; readonly by: string };

/** The manifest with every edit applied. Throws if an edit does not match. */
export function edited(from: string, text: string, edits: readonly Edit[]): string {
  let result = text;
  for (const edit of edits) {
    const found = "field" in edit ? fieldIn(result, edit.field) : edit.text;
    if (found === undefined || !result.includes(found)) {
      const what = "field" in edit ? edit.field : edit.text;
      throw new Error(
        `Cannot make the chart: deploy/${from} has no "${what.trim()}", expected one`,
      );
    }
    result = result.replaceAll(found, () => edit.by);
  }
  return result;
}

/**
 * The field whose line starts with this text (including its indentation), with the more deeply
 * indented lines and comments below it.
 */
export function fieldIn(text: string, field: string): string | undefined {
  const lines = text.split("\n");
  const from = lines.findIndex((line) => line.startsWith(field));
  if (from < 0) return undefined;
  const depth = field.search(/\S/);
  const rest = lines.slice(from + 1).findIndex((line) => line.search(/\S/) <= depth);
  const to = rest < 0 ? lines.length - 1 : from + 1 + rest;
  return `${lines.slice(from, to).join("\n")}\n`;
}

interface Part {
  readonly part: "controller" | "agent";
  /** The prefix of its values. */
  readonly values: ".Values" | ".Values.agent";
  readonly image: string;
  readonly args: string;
  readonly priorityClass: string;
}

function podEdits({ part, values, image, args, priorityClass }: Part): readonly Edit[] {
  const root = `"root" $ "values" ${values} "part" "${part}"`;
  return [
    {
      text: `      labels: {app.kubernetes.io/name: lastcall, app.kubernetes.io/component: ${part}}\n`,
      by: `      labels:\n        {{- include "lastcall.podLabels" (dict ${root}) | nindent 8 }}\n`,
    },
    {
      field: "      annotations:",
      by: `      annotations:\n        {{- include "lastcall.podAnnotations" (dict ${root}) | nindent 8 }}\n`,
    },
    {
      text: "      automountServiceAccountToken: true\n",
      by: `      automountServiceAccountToken: true
      {{- with .Values.imagePullSecrets }}
      imagePullSecrets:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with include "lastcall.volumes" (dict ${root}) }}
      volumes:
        {{- . | nindent 8 }}
      {{- end }}
`,
    },
    {
      text: "        kubernetes.io/os: linux\n",
      by: `        kubernetes.io/os: linux
        {{- with omit ${values}.nodeSelector "kubernetes.io/os" }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
`,
    },
    {
      text: `priorityClassName: ${priorityClass}\n`,
      by: `priorityClassName: {{ .Values.priorityClassName | default "${priorityClass}" | quote }}\n`,
    },
    {
      field: "      securityContext:",
      by: `      securityContext:\n        {{- toYaml ${values}.podSecurityContext | nindent 8 }}\n`,
    },
    {
      text: `          image: ${image}\n`,
      by: `          image: {{ include "lastcall.image" (dict "root" $ "image" ${values}.image) | quote }}
          imagePullPolicy: {{ ${values}.image.pullPolicy }}
          {{- with include "lastcall.volumeMounts" (dict ${root}) }}
          volumeMounts:
            {{- . | nindent 12 }}
          {{- end }}
`,
    },
    {
      text: `          args: ${args}\n`,
      by: `          args:
            - ${part === "agent" ? "agent" : "run"}
            {{- with include "lastcall.args" (dict ${root}) }}
            {{- . | trim | nindent 12 }}
            {{- end }}
`,
    },
    {
      text: "          ports:\n",
      by: `            {{- with include "lastcall.env" (dict ${root}) }}
            {{- . | trim | nindent 12 }}
            {{- end }}
          ports:
`,
    },
    {
      field: "          resources:",
      by: `          resources:\n            {{- include "lastcall.resources" (dict ${root}) | nindent 12 }}\n`,
    },
    {
      field: "          securityContext:",
      by: `          securityContext:\n            {{- toYaml ${values}.securityContext | nindent 12 }}\n`,
    },
  ];
}

const health = '{{ include "lastcall.healthPort" (dict "root" $ "part" "agent") }}';
const healthHost = '{{ include "lastcall.agentHealthHost" . }}';

function metricsPort(part: "controller" | "agent"): string {
  return `{{ include "lastcall.metricsPort" (dict "root" $ "part" "${part}") }}`;
}

export const controllerPod: readonly Edit[] = [
  {
    text: "replicas: 2\n",
    by: `replicas: {{ include "lastcall.replicas" . }}
  {{- if eq (include "lastcall.option" (dict "root" $ "part" "controller" "name" "leader-elect")) "false" }}
  # Nothing else keeps a second controller from acting during an update.
  strategy: {type: Recreate}
  {{- end }}
`,
  },
  ...podEdits({
    ...{ part: "controller", values: ".Values", image: "lastcall:0.1.0", args: "[run]" },
    priorityClass: "system-cluster-critical",
  }),
  {
    field: "      affinity:",
    by: `      {{- with .Values.tolerations }}
      tolerations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with include "lastcall.affinity" (dict "own" .Values.affinity "nodeSelector" .Values.nodeSelector "requireStable" .Values.controller.requireStableNodes "usual" (include "lastcall.controllerAffinity" .)) }}
      affinity:
        {{- . | nindent 8 }}
      {{- end }}
`,
  },
  { text: "containerPort: 9101}", by: `containerPort: ${metricsPort("controller")}}` },
  {
    text: "containerPort: 8080}",
    by: 'containerPort: {{ include "lastcall.healthPort" (dict "root" $ "part" "controller") }}}',
  },
];

export const agentPod: readonly Edit[] = [
  {
    field: "  updateStrategy:",
    by: "  updateStrategy:\n    {{- toYaml .Values.agent.updateStrategy | nindent 4 }}\n",
  },
  ...podEdits({
    ...{ part: "agent", values: ".Values.agent", image: "lastcall-agent:0.1.0" },
    args: '[agent, "--health-address=127.0.0.1:8087"]',
    priorityClass: "system-node-critical",
  }),
  {
    field: "      tolerations:",
    by: `      {{- with .Values.agent.tolerations }}
      tolerations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
`,
  },
  {
    field: "      affinity:",
    by: `      {{- with include "lastcall.affinity" (dict "own" .Values.agent.affinity "nodeSelector" dict "requireStable" false "usual" (include "lastcall.agentAffinity" .)) }}
      affinity:
        {{- . | nindent 8 }}
      {{- end }}
`,
  },
  {
    text: "containerPort: 9101, hostPort: 9101}",
    by: `containerPort: ${metricsPort("agent")}, hostPort: ${metricsPort("agent")}}`,
  },
  {
    text: "host: 127.0.0.1, path: /healthz, port: 8087}",
    by: `host: ${healthHost}, path: /healthz, port: ${health}}`,
  },
  {
    text: "host: 127.0.0.1, path: /readyz, port: 8087}",
    by: `host: ${healthHost}, path: /readyz, port: ${health}}`,
  },
];
