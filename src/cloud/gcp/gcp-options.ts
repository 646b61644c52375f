/** Options of the controller. */
export const gcpOptions = [
  {
    name: "gcp-endpoint",
    type: "url",
    value: "URL",
    commands: ["run", "doctor"],
    help: "URL of the Compute Engine API, without /compute/v1; default: Google's",
  },
  {
    name: "gcp-preemption-poll",
    type: "duration",
    value: "DURATION",
    // An interval longer than a termination is too late; a shorter one wastes the project's quota.
    shortest: "1s",
    longest: "1m",
    commands: ["run", "setup"],
    parts: ["gcp"],
    help: "How often to poll each zone of Compute Engine for preemptions, such as 10s; setup grants the permission; default: never",
  },
] as const;

/** Options of `lastcall setup gcp`, in addition to those of every cloud. */
export const gcpSetupOptions = [
  {
    name: "project",
    type: "text",
    value: "ID",
    commands: ["setup"],
    parts: ["gcp"],
    help: "With gcp, required: the project of the machines",
  },
  {
    name: "location",
    type: "text",
    value: "ZONE|REGION",
    commands: ["setup"],
    parts: ["gcp"],
    help: "With gcp: zone or region of the cluster",
  },
  {
    name: "google-service-account",
    type: "text",
    value: "NAME",
    commands: ["setup"],
    parts: ["gcp"],
    help: "With gcp: create this Google service account for the controller to impersonate; default: none is needed",
  },
  {
    name: "key-file",
    type: "switch",
    default: "false",
    commands: ["setup"],
    parts: ["gcp"],
    help: "With gcp and --google-service-account, without Workload Identity: create a key of it, in the Secret SERVICE_ACCOUNT-key",
  },
] as const;
