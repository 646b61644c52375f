/**
 * Values that Lastcall's chart has only for compatibility with that of
 * estafette-gke-preemptible-killer.
 */
import type { JsonSchema } from "../src/config/schema/crd.ts";
import { annotations, type ChartValue, labels } from "./chart-schema.ts";

const optionalText: JsonSchema = { type: ["string", "null"] };
const flag: JsonSchema = { type: "boolean" };
const secretKey: JsonSchema = {
  type: "object",
  additionalProperties: false,
  properties: { name: optionalText, key: optionalText },
};
const seconds: JsonSchema = { type: ["integer", "string"], pattern: "^[0-9]+$", minimum: 0 };

/** Values of estafette-gke-preemptible-killer's chart that have no counterpart in Lastcall's. */
export const killerValues: readonly ChartValue[] = [
  {
    path: "secret",
    schema: {
      type: "object",
      additionalProperties: false,
      properties: {
        workloadIdentityServiceAccount: optionalText,
        googleServiceAccountKeyfileJson: optionalText,
        valuesAreBase64Encoded: flag,
        useGcpServiceAccountAnnotation: flag,
        googleServiceAccountSecret: secretKey,
      },
    },
    about:
      "`workloadIdentityServiceAccount` becomes the annotation `iam.gke.io/gcp-service-account`. `googleServiceAccountKeyfileJson` (with `valuesAreBase64Encoded`) becomes a Secret, and `googleServiceAccountSecret` names an existing one; it is mounted, and GOOGLE_APPLICATION_CREDENTIALS names the file. `useGcpServiceAccountAnnotation` leaves the Secret to estafette-gcp-service-account. If one of them is set and `policies` is empty, the chart creates a policy that does what the killer did.",
  },
  {
    ...{ path: "drainTimeout", schema: seconds },
    about: "With `secret`: the `drain.timeout` of that policy in seconds; 300 if absent.",
  },
  {
    ...{ path: "replicaCount", schema: { type: "integer", minimum: 0 } },
    about: "The same as `controller.replicas`, and takes precedence over it.",
  },
  {
    ...{
      path: "logFormat",
      schema: { enum: ["plaintext", "console", "json", "stackdriver", "v3"] },
    },
    about:
      "The `log-format` of the controller and the agents: `text` for plaintext and console, `json` for the others. The option `log-format` takes precedence.",
  },
  {
    ...{ path: "interval", schema: seconds },
    about: "Has no effect: Lastcall watches the cluster and acts when a departure is due.",
  },
  {
    ...{ path: "extraLabels", schema: labels, default: {} },
    about: "Additional labels for every object.",
  },
  {
    ...{ path: "extraPodLabels", schema: labels },
    about: "The same as `podLabels`.",
  },
  {
    ...{ path: "extraPodAnnotations", schema: annotations },
    about: "The same as `podAnnotations`.",
  },
  {
    ...{ path: "extraArgs", schema: { type: "array" } },
    about:
      "Rejected unless empty: use `controller.options`. `lastcall migrate estafette` translates the killer's arguments.",
  },
  {
    ...{ path: "prometheus", schema: { type: "object" } },
    about: "Rejected if its ServiceMonitor is enabled: use `metrics.serviceMonitor.enabled`.",
  },
];
