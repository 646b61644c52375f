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
      "`workloadIdentityServiceAccount` becomes the annotation `iam.gke.io/gcp-service-account`; `googleServiceAccountKeyfileJson` (with `valuesAreBase64Encoded`) a Secret, or `googleServiceAccountSecret` one that is there, mounted as GOOGLE_APPLICATION_CREDENTIALS; `useGcpServiceAccountAnnotation` leaves the Secret to estafette-gcp-service-account. Where one of them is given and `policies` is empty, a policy is made that does what the killer promised.",
  },
  {
    ...{ path: "drainTimeout", schema: seconds },
    about: "With `secret`: `drain.timeout` of that policy in seconds, 300 if absent.",
  },
  {
    ...{ path: "replicaCount", schema: { type: "integer", minimum: 0 } },
    about: "The same as `controller.replicas`, and beats it.",
  },
  {
    ...{
      path: "logFormat",
      schema: { enum: ["plaintext", "console", "json", "stackdriver", "v3"] },
    },
    about:
      "`log-format` of both parts: `text` for plaintext and console, `json` for the others. An option of that name beats it.",
  },
  {
    ...{ path: "interval", schema: seconds },
    about: "Without effect: Lastcall watches the cluster and acts when a departure is due.",
  },
  {
    ...{ path: "extraLabels", schema: labels, default: {} },
    about: "More labels on every object.",
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
      "Refused unless empty: write `controller.options`; `lastcall migrate estafette` translates the killer's arguments.",
  },
  {
    ...{ path: "prometheus", schema: { type: "object" } },
    about: "Refused where it is enabled: write `metrics.serviceMonitor.enabled`.",
  },
];
