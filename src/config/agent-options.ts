import type { Option } from "./option.ts";

/** What `lastcall agent` alone takes, beside what every command does. */
export const agentOptions = [
  {
    name: "node-name",
    type: "text",
    value: "NAME",
    required: true,
    commands: ["agent"],
    help: "The node that the agent runs on",
  },
  {
    name: "cloud",
    type: "choice",
    choices: ["auto", "aws", "gcp", "azure"],
    default: "auto",
    commands: ["agent"],
    help: "Whose metadata to watch; auto asks around",
  },
  {
    name: "metadata-url",
    type: "url",
    value: "URL",
    commands: ["agent"],
    help: "The metadata server; absent: the cloud's own",
  },
  {
    name: "fallback",
    type: "choice",
    choices: ["None", "Cordon", "Drain"],
    default: "None",
    commands: ["agent"],
    help: "What the agent does itself where no controller has taken a notice within three seconds",
  },
  {
    name: "notice-address",
    type: "address",
    value: "ADDRESS",
    commands: ["agent"],
    help: "Where /notice tells applications on the node what is known; absent: nowhere",
  },
  {
    name: "azure-acknowledge",
    type: "switch",
    default: "false",
    commands: ["agent"],
    help: "Tells Azure to begin once the node is drained, where an event takes no other machine",
  },
] as const satisfies readonly Option[];
