import { type CommandSpec, command } from "./command-spec.ts";

/** Every command, in the order in which help shows them. */
export const commandList: readonly CommandSpec[] = [
  command({
    name: "run",
    summary: "The controller: plans departures and carries them out",
    words: "",
    minWords: 0,
    maxWords: 0,
    examples: ["lastcall run --dry-run", "lastcall run -f policy.yaml --leader-elect=false"],
    load: async () => (await import("./run.ts")).runController,
  }),
  command({
    name: "plan",
    summary: "Who will leave, when and why, and what could not be planned",
    words: "",
    minWords: 0,
    maxWords: 0,
    examples: [
      "lastcall plan",
      "kubectl get nodes,pods,pdb -A -o json | lastcall plan -f policy.yaml --from - -o json",
      "lastcall plan -f policy.yaml --from nodes.json --at 2026-11-20T00:00:00Z --strict",
    ],
    load: async () => (await import("./plan.ts")).runPlan,
  }),
  command({
    name: "drain-plan",
    summary: "How one node's pods would leave: order, seconds, what is cut, what blocks",
    words: "NODE",
    minWords: 1,
    maxWords: 1,
    examples: ["lastcall drain-plan n1", "lastcall drain-plan n1 --notice 120s -o json"],
    load: async () => (await import("./drain-plan.ts")).runDrainPlan,
  }),
  command({
    name: "audit",
    summary: "Grace budgets and other Spot readiness of workloads, live or from manifests",
    words: "",
    minWords: 0,
    maxWords: 0,
    examples: [
      "helm template my-chart | lastcall audit -f - --platform gke",
      "lastcall audit -f manifests/ --platform gke --platform eks --fail-on warning",
    ],
    load: async () => (await import("./audit-command.ts")).runAuditCommand,
  }),
  command({
    name: "setup",
    summary: "Prints, or with --apply runs, what has to be set up once",
    words: "crds|admission",
    minWords: 1,
    maxWords: 1,
    examples: ["lastcall setup crds | kubectl apply -f -", "lastcall setup crds --apply"],
    load: async () => (await import("./setup.ts")).runSetup,
  }),
  command({
    name: "demo",
    summary: "A model cluster in this process, the real controller on it, and a board of it",
    words: "",
    minWords: 0,
    maxWords: 0,
    examples: [
      "lastcall demo",
      "lastcall demo --nodes 30 --speed 300",
      "lastcall demo --headless --hours 48 --seed 1 -o json",
    ],
    load: async () => (await import("./demo.ts")).runDemo,
  }),
  command({
    name: "version",
    summary: "The version of Lastcall",
    words: "",
    minWords: 0,
    maxWords: 0,
    examples: ["lastcall version -o json"],
    load: async () => (await import("./version.ts")).runVersion,
  }),
];
