import { clouds } from "../../cloud/clouds.ts";
import { knownClouds } from "../../cloud/facts/known-clouds.ts";
import type { Option } from "../../config/options/option.ts";
import { optionsFor } from "../../config/options/options.ts";
import { LastcallError } from "../../errors.ts";
import { type CommandSpec, command } from "./command.ts";

/** Every command, in the order in which help shows them. */
export const commandList: readonly CommandSpec[] = [
  command({
    name: "run",
    summary: "Run the controller, which plans departures and carries them out",
    words: "",
    minWords: 0,
    maxWords: 0,
    examples: [
      "lastcall run --dry-run",
      "lastcall run -f policy.yaml --leader-elect=false",
      "lastcall run --sqs-queue-url https://sqs.eu-west-1.amazonaws.com/123456789012/lastcall",
    ],
    load: async () => (await import("../commands/run.ts")).runController,
  }),
  command({
    name: "agent",
    summary: "Run the agent, which watches for the notices of one node",
    words: "",
    minWords: 0,
    maxWords: 0,
    examples: [
      "lastcall agent --node-name n1",
      "lastcall agent --node-name n1 --cloud gcp --metadata-url http://127.0.0.1:8088 --dry-run",
    ],
    load: async () => (await import("../commands/agent.ts")).runAgent,
  }),
  command({
    name: "plan",
    summary: "Show which nodes leave, when and why, and which could not be planned",
    words: "",
    minWords: 0,
    maxWords: 0,
    columns: [
      ["DEPARTS", "when the node leaves; due: its time has come, and something holds it back"],
      ["DEADLINE", "its launch time + lifetime.max - lifetime.reserve"],
      ["WINDOW", "the Allow window in which it leaves"],
      ["REASON", "why at that time; docs/troubleshooting.md explains each"],
    ],
    examples: [
      "lastcall plan",
      "kubectl get nodes,pods,pdb -A -o json | lastcall plan -f policy.yaml --from - -o json",
      "lastcall plan -f policy.yaml --from nodes.json --at 2026-11-20T00:00:00Z --strict",
    ],
    load: async () => (await import("../commands/plan.ts")).runPlan,
  }),
  command({
    name: "drain-plan",
    summary: "Show how the pods of a node would leave: order, grace periods, what blocks",
    words: "NODE",
    minWords: 1,
    maxWords: 1,
    columns: [
      [
        "ACTION",
        "Evict; Delete, regardless of its budgets; Wait, until it terminates on its own; Block, it stays for now",
      ],
      [
        "TIER",
        "in this order: 0 workloads, 1 critical pods and DNS, 2 DaemonSet pods that a podRule names, 3 the controller",
      ],
      ["START", "when it is evicted, counted from the start of the drain"],
      ["GRACE", "its grace period; 15s of 60s: truncated"],
      ["FORCE", "under a notice: when it is deleted if its budget still refuses the eviction"],
      ["BUDGET", "the PodDisruptionBudget that selects it"],
    ],
    examples: ["lastcall drain-plan n1", "lastcall drain-plan n1 --notice 120s -o json"],
    load: async () => (await import("../commands/drain-plan.ts")).runDrainPlan,
  }),
  command({
    name: "depart",
    summary: "Make nodes leave now, at a given time or by a deadline",
    words: "NODE…",
    minWords: 0,
    maxWords: Number.POSITIVE_INFINITY,
    examples: [
      "lastcall depart n1 n2",
      "lastcall depart n1 --wait --timeout 30m",
      "lastcall depart -l pool=batch --at 22:00 --by 06:00 --dry-run",
      "lastcall depart n1 --at 2026-11-21T02:00:00Z",
      "lastcall depart n1 --by 2h --dry-run",
      "lastcall depart n1 --only-actions --cause SpotInterruption --dry-run",
    ],
    load: async () => (await import("../commands/depart.ts")).runDepart,
  }),
  command({
    name: "hold",
    summary: "Keep nodes from planned departures for a while; a notice still drains them",
    words: "NODE…",
    minWords: 0,
    maxWords: Number.POSITIVE_INFINITY,
    examples: [
      "lastcall hold n1 --for 4h",
      "lastcall hold -l pool=batch --until 22:00 --dry-run",
      "lastcall hold n1 --undo",
    ],
    load: async () => (await import("../commands/hold.ts")).runHold,
  }),
  command({
    name: "freeze",
    summary: "Start no planned departure of a policy, or of all, until a given time",
    words: "",
    minWords: 0,
    maxWords: 0,
    examples: [
      "lastcall freeze --all --until 22:00",
      "lastcall freeze --policy spot --for 4h --dry-run",
      "lastcall freeze --all --undo",
    ],
    load: async () => (await import("../commands/freeze.ts")).runFreeze,
  }),
  command({
    name: "audit",
    summary: "Check grace periods and Spot readiness of workloads, in a cluster or in manifests",
    words: "",
    minWords: 0,
    maxWords: 0,
    examples: [
      "helm template my-chart | lastcall audit -f - --platform gke",
      "lastcall audit -f manifests/ --platform gke --platform eks --fail-on warning",
    ],
    load: async () => (await import("../commands/audit.ts")).runAuditCommand,
  }),
  command({
    name: "simulate",
    summary: "Run policies on a model or recorded fleet, days in seconds",
    words: "[SCENARIO.yaml]",
    minWords: 0,
    maxWords: 1,
    columns: [
      ["PLANNED", "departures as planned"],
      ["PREEMPTED", "machines that the cloud took; AT 24 H: of these, at their limit"],
      ["FORCED", "departures with a pod deleted against its budget, or left behind"],
      ["EXPIRED", "departures whose notice ran out"],
      ["PODS CUT", "pods with less time to terminate than they ask for"],
      ["PODS KILLED", "pods that were killed before their program had ended"],
      ["REPLACED", "nodes that took the place of others"],
      ["AT ONCE", "the most machines that the cloud took within an hour"],
      ["WITHIN 60 S", "the same within a minute"],
    ],
    examples: [
      "lastcall simulate --list",
      "lastcall simulate --scenario storm --policy policy.yaml --runs 10",
      "lastcall simulate --policy late.yaml --policy even.yaml --compare -o json",
      "kubectl get nodes -o json | lastcall simulate - --policy policy.yaml",
    ],
    load: async () => (await import("../commands/simulate.ts")).runSimulate,
  }),
  command({
    name: "doctor",
    summary:
      "Check whether Lastcall is set up correctly: permissions, clouds, clocks, other tools, budgets",
    words: "",
    minWords: 0,
    maxWords: 0,
    examples: [
      "lastcall doctor",
      "lastcall doctor --fail-on warn -o json",
      "kubectl exec -n lastcall deploy/lastcall -- node /app/bin/lastcall.js doctor",
    ],
    load: async () => (await import("../commands/doctor.ts")).runDoctor,
  }),
  command({
    name: "setup",
    summary: "Print, or with --apply install, what has to be set up once",
    words: ["crds", "admission", ...knownClouds.map(({ name }) => name)].join("|"),
    minWords: 1,
    maxWords: 1,
    examples: [
      "lastcall setup crds | kubectl apply -f -",
      "lastcall setup crds --apply",
      "lastcall setup admission --platform gke --action Warn | kubectl apply -f -",
      ...clouds.flatMap(({ facts, setup }) =>
        setup.examples.map((example) => `lastcall setup ${facts.name} ${example}`),
      ),
    ],
    load: async () => (await import("../commands/setup.ts")).runSetup,
  }),
  command({
    name: "migrate",
    summary: "Turn another tool's settings and node marks into policies, and clean up after it",
    words: "estafette|nth",
    minWords: 1,
    maxWords: 1,
    examples: [
      "lastcall migrate estafette --values values.yaml --values-out lastcall-values.yaml > policy.yaml",
      "lastcall migrate nth --manifest nth.yaml",
      "lastcall migrate estafette --apply",
    ],
    load: async () => (await import("../commands/migrate.ts")).runMigrate,
  }),
  command({
    name: "board",
    summary:
      "The departures board, in a browser or in a terminal, with your own permissions in the cluster",
    words: "",
    minWords: 0,
    maxWords: 0,
    examples: [
      "lastcall board --open",
      "lastcall board --context prod --address 127.0.0.1:9000",
      "lastcall board --tui",
    ],
    load: async () => (await import("../commands/board.ts")).runBoard,
  }),
  command({
    name: "demo",
    summary: "Run the real controller on a model cluster, with a live board",
    words: "",
    minWords: 0,
    maxWords: 0,
    examples: [
      "lastcall demo",
      "lastcall demo --nodes 30 --speed 300",
      "lastcall demo --headless --hours 48 --seed 1 -o json",
    ],
    load: async () => (await import("../commands/demo.ts")).runDemo,
  }),
  command({
    name: "version",
    summary: "Print the version",
    words: "",
    minWords: 0,
    maxWords: 0,
    examples: ["lastcall version -o json"],
    load: async () => (await import("../commands/version.ts")).runVersion,
  }),
];

export interface CompletedCommand {
  readonly name: string;
  readonly summary: string;
  /** The values of its argument, if there is a fixed list. */
  readonly words: readonly string[];
  readonly flags: readonly CompletedFlag[];
}

export interface CompletedFlag {
  /** The long name, without its dashes. */
  readonly name: string;
  /** The letter of the short form. */
  readonly short?: string | undefined;
  /** None: a switch. Any: a value that the shell completes as a file name. */
  readonly value: "None" | "Any" | readonly string[];
}

/** All commands, and the two that are not in the list. */
export function completedCommands(): readonly CompletedCommand[] {
  const own = commandList.map((spec) => ({
    name: spec.name,
    summary: spec.summary,
    words: spec.words.includes("|") ? spec.words.split("|") : [],
    flags: optionsFor(spec.name).map((option) => ({
      name: option.name,
      short: option.short,
      value: valuesOf(option),
    })),
  }));
  const names = [...own.map(({ name }) => name), "completion"];
  return [
    ...own,
    { name: "help", summary: "Show help for a command", words: names, flags: [] },
    {
      name: "completion",
      summary: "Print the completion script of a shell",
      words: ["bash", "zsh", "fish"],
      flags: [],
    },
  ];
}

function valuesOf(option: Option): CompletedFlag["value"] {
  if (option.type === "switch") return "None";
  return option.type === "choice" ? option.choices : "Any";
}

/**
 * The completion script of bash, zsh or fish for these commands. Throws USAGE for another shell.
 */
export function completionScript(shell: string, commands: readonly CompletedCommand[]): string {
  switch (shell) {
    case "bash":
      return bashScript(commands);
    case "zsh":
      return `autoload -U +X bashcompinit && bashcompinit\n${bashScript(commands)}`;
    case "fish":
      return fishScript(commands);
    default:
      throw new LastcallError(
        "USAGE",
        `Cannot complete for ${JSON.stringify(shell)}: unknown shell, expected bash, zsh or fish`,
      );
  }
}

/**
 * bash splits at `=`, so `--output=js` is three words. In zsh, and if COMP_WORDBREAKS has no `=`,
 * it is one word, and so is each suggestion.
 */
function bashScript(commands: readonly CompletedCommand[]): string {
  return `_lastcall() {
  local cur="\${COMP_WORDS[COMP_CWORD]}" before="\${COMP_WORDS[COMP_CWORD-1]}" words="" flag=""
  [ "$before" = "=" ] && before="\${COMP_WORDS[COMP_CWORD-2]}"
  [ "$cur" = "=" ] && cur=""
  case "$cur" in
    --*=*) before="\${cur%%=*}"; cur="\${cur#*=}"; flag="$before=" ;;
  esac
  if [ "$COMP_CWORD" -eq 1 ]; then
    words="${commands.map(({ name }) => name).join(" ")}"
  else
    case "\${COMP_WORDS[1]} $before" in
${commands.flatMap(bashCases).join("\n")}
    esac
  fi
  COMPREPLY=($(compgen -P "$flag" -W "$words" -- "$cur"))
}
complete -o default -F _lastcall lastcall
`;
}

/** Of equal patterns the first matches: the word before is the best hint. */
function bashCases({ name, words, flags }: CompletedCommand): readonly string[] {
  const values = flags.flatMap((flag) => {
    if (flag.value === "None") return [];
    const short = flag.short === undefined ? [] : [`-${flag.short}`];
    const pattern = [`--${flag.name}`, ...short].map((spelled) => `"${name} ${spelled}"`).join("|");
    return `      ${pattern}) words="${flag.value === "Any" ? "" : flag.value.join(" ")}" ;;`;
  });
  const all = [...words, ...flags.map((flag) => `--${flag.name}`)].join(" ");
  return [...values, `      "${name} "*) words="${all}" ;;`];
}

/** The command is the word after `lastcall`: a later word may be the name of a node. */
function fishScript(commands: readonly CompletedCommand[]): string {
  const lines = commands.flatMap(({ name, summary, words, flags }) => {
    const here = `complete -c lastcall -n '__lastcall_runs ${name}'`;
    return [
      `complete -c lastcall -n __lastcall_runs -f -a ${name} -d '${summary.replaceAll("'", "\\'")}'`,
      ...(words.length === 0 ? [] : [`${here} -f -a '${words.join(" ")}'`]),
      ...flags.map((flag) => `${here} -l ${flag.name}${fishValue(flag)}`),
    ];
  });
  return `function __lastcall_runs
  set -l typed (commandline -opc)
  test "$typed[2]" = "$argv[1]"
end
${lines.join("\n")}
`;
}

function fishValue({ short, value }: CompletedFlag): string {
  const letter = short === undefined ? "" : ` -s ${short}`;
  if (value === "None") return letter;
  return value === "Any" ? `${letter} -r` : `${letter} -x -a '${value.join(" ")}'`;
}
