import type { Option } from "./option.ts";

/** The options of `audit`, and of what goes on with it in other commands. */
export const auditOptions = [
  {
    name: "platform",
    type: "text",
    value: "NAME",
    list: true,
    commands: ["audit"],
    help: "gke, gke-25, gke-120, eks, eks-al2023, aks, kubelet:TOTAL/CRITICAL or kubelet:FILE; may be repeated",
  },
  {
    name: "fail-on",
    type: "choice",
    choices: ["error", "warning", "info", "never"],
    default: "error",
    commands: ["audit"],
    help: "The lightest finding that makes the exit code 3",
  },
  {
    name: "baseline",
    type: "text",
    value: "FILE",
    commands: ["audit"],
    help: "A file of findings that are known and accepted",
  },
  {
    name: "audit-every",
    type: "duration",
    value: "DURATION",
    default: "6h",
    commands: ["run"],
    help: "How often the leader audits the workloads of the cluster; 0: never, and needs no right to list them",
  },
] as const satisfies readonly Option[];
