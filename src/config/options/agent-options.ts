import type { Option } from "./option.ts";

/** What `lastcall agent` alone takes, beside what every command does. */
export const agentOptions = [
  {
    name: "node-name",
    type: "text",
    value: "NAME",
    required: true,
    commands: ["agent"],
    help: "Name of the node that the agent runs on",
  },
  {
    name: "cloud",
    type: "choice",
    choices: ["auto", "aws", "gcp", "azure"],
    default: "auto",
    commands: ["agent"],
    help: "Cloud whose metadata service to watch; auto detects it",
  },
  {
    name: "metadata-url",
    type: "url",
    value: "URL",
    commands: ["agent"],
    help: "URL of the metadata service; default: the cloud's own",
  },
  {
    name: "fallback",
    type: "choice",
    choices: ["None", "Cordon", "Drain"],
    default: "None",
    commands: ["agent"],
    help: "What the agent does itself if no controller has acted on a notice within three seconds",
  },
  {
    name: "notice-address",
    type: "address",
    value: "ADDRESS",
    commands: ["agent"],
    help: "Address to serve /notice on, for applications on the node; default: not served",
  },
  {
    name: "azure-acknowledge",
    type: "switch",
    default: "false",
    commands: ["agent"],
    help: "Acknowledge an Azure event once the node is drained, if the event concerns no other machine",
  },
] as const satisfies readonly Option[];
