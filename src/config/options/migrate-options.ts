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
    help: "The form of the policies that are printed",
  },
  {
    name: "values",
    type: "text",
    value: "FILE",
    commands: ["migrate"],
    help: "The values file of the other tool's chart, instead of what runs in the cluster",
  },
  {
    name: "manifest",
    type: "text",
    value: "FILE",
    commands: ["migrate"],
    help: "A manifest of the other tool, instead of what runs in the cluster",
  },
  {
    name: "values-out",
    type: "text",
    value: "FILE",
    commands: ["migrate"],
    help: "Writes the values of Lastcall's chart, with the policies, into this file",
  },
] as const satisfies readonly Option[];
