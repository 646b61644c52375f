import type { Option } from "./option.ts";

/** What `migrate` reads, and where it writes. */
export const migrateOptions = [
  {
    name: "output",
    short: "o",
    type: "choice",
    choices: ["yaml", "json"],
    default: "yaml",
    commands: ["migrate"],
    help: "Output format of the policies",
  },
  {
    name: "values",
    type: "text",
    value: "FILE",
    commands: ["migrate"],
    help: "Values file of the other tool's chart to read, instead of what runs in the cluster",
  },
  {
    name: "manifest",
    type: "text",
    value: "FILE",
    commands: ["migrate"],
    help: "Manifest of the other tool to read, instead of what runs in the cluster",
  },
  {
    name: "values-out",
    type: "text",
    value: "FILE",
    commands: ["migrate"],
    help: "Write the values of Lastcall's chart, with the policies, to this file",
  },
] as const satisfies readonly Option[];
