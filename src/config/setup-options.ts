import type { Option } from "./option.ts";

/** What `setup gcp` is told of the project and of the controller that gets the rights. */
export const setupOptions = [
  {
    name: "project",
    type: "text",
    value: "ID",
    commands: ["setup"],
    help: "With gcp: the project of the machines; wanted",
  },
  {
    name: "cluster",
    type: "text",
    value: "NAME",
    commands: ["setup"],
    help: "With gcp: look first whether this cluster has Workload Identity; with --location",
  },
  {
    name: "location",
    type: "text",
    value: "ZONE|REGION",
    commands: ["setup"],
    help: "With gcp: where the cluster is",
  },
  {
    name: "service-account",
    type: "text",
    value: "NAME",
    default: "lastcall",
    commands: ["setup"],
    help: "With gcp: the controller's ServiceAccount in the cluster",
  },
  {
    name: "google-service-account",
    type: "text",
    value: "NAME",
    commands: ["setup"],
    help: "With gcp: make this service account and let the controller act as it; absent: it needs none",
  },
  {
    name: "role",
    type: "text",
    value: "ID",
    default: "lastcall",
    commands: ["setup"],
    help: "With gcp: the custom role that is made",
  },
  {
    name: "release",
    type: "choice",
    choices: ["Recreate", "Delete", "DeleteInstance", "None"],
    default: "Recreate",
    commands: ["setup"],
    help: "With gcp: the instance.release of the policies, for which the role is made",
  },
  {
    name: "regional-groups",
    type: "switch",
    default: "false",
    commands: ["setup"],
    help: "With gcp: machines are in regional groups; those of GKE are in zonal ones",
  },
] as const satisfies readonly Option[];
