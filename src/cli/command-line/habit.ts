/** kubectl commands that people type, and the equivalent here. */
const commandHabits: Readonly<Record<string, string>> = {
  get: "use lastcall plan, or kubectl get departures,departurepolicies",
  describe: "use lastcall drain-plan NODE, or kubectl describe departure NAME",
  cordon: "use lastcall depart NODE, or kubectl cordon NODE only to keep new pods away",
  drain: "use lastcall depart NODE, which lastcall drain-plan NODE shows beforehand",
  annotate: "use lastcall hold NODE, or kubectl annotate",
  pause: "use lastcall freeze --all --until TIME, or lastcall hold NODE for single nodes",
  list: "use lastcall plan, or kubectl get departures,departurepolicies",
  thaw: "use lastcall freeze --undo",
  unfreeze: "use lastcall freeze --undo",
  unhold: "use lastcall hold NODE --undo",
  uncordon: "use kubectl delete departure NAME, which cancels it and uncordons its node",
  apply: "use kubectl apply -f FILE for policies, or lastcall setup crds --apply",
  delete: "use kubectl delete departure NAME, which cancels it",
  cancel: "use kubectl delete departure NAME, which cancels it",
  evict: "use lastcall depart NODE, which evicts its pods",
  install: "use kubectl apply -k with a kustomization, as in README.md, or Helm",
  release: "use lastcall hold NODE --undo to end a hold, or lastcall depart NODE",
  uninstall: "use kubectl delete -k, or helm uninstall, as docs/getting-started.md describes",
  explain: "use kubectl explain departurepolicy.spec",
  logs: "use kubectl logs with the deployment of the controller",
  status: "use lastcall plan for the fleet, or lastcall doctor for the installation",
  watch: "use lastcall board --tui",
  why: "use lastcall plan, or kubectl describe departure NAME",
};

const follow = "use lastcall board --tui to follow the cluster";
const labelled = "omit it: only lastcall depart and lastcall hold choose nodes by their labels";
const byPolicy = "omit it: spec.drain of the policy says what a drain may do";
const ends = "use --undo, with which lastcall hold and lastcall freeze end what they set";
const otherCluster = "use --kubeconfig FILE and --context NAME";
const uncoloured = "set NO_COLOR=1, or use a pipe, which gets no color";
const wholeCluster = "omit it: all namespaces are read";

/** Options of kubectl and of other commands, and what to use instead. */
export const optionHabits: Readonly<Record<string, string>> = {
  "-A": wholeCluster,
  "--all": "use -l SELECTOR, by which lastcall depart and lastcall hold choose nodes",
  "--all-namespaces": wholeCluster,
  "--as": "use a kubeconfig whose user has as: NAME",
  "--cancel": "use kubectl delete departure NAME, which cancels it",
  "--cluster": otherCluster,
  "--color": uncoloured,
  "--delete-emptydir-data": "omit it: pods with emptyDir volumes are evicted like others",
  "--disable-eviction": byPolicy,
  "--dry-run": "omit it: without --apply nothing is changed, and plan changes nothing at all",
  "--duration": "use --for 4h",
  "--end": ends,
  "--file": "use -f FILE",
  "--fix": "omit it: each check says how to mend it",
  "--force": byPolicy,
  "--from":
    "use it with plan, drain-plan and audit; lastcall simulate takes the file as an argument",
  "--grace-period": "omit it: each pod gets its own grace period",
  "--in": "use --at or --for with a duration, such as --at 2h",
  "--ignore-daemonsets": "omit it: pods of a DaemonSet are never evicted",
  "--no-color": uncoloured,
  "--node": "omit it: nodes are arguments, as in lastcall drain-plan NODE",
  "--now": "omit it: without --at, a departure starts now",
  "--port": "use --address 127.0.0.1:PORT",
  "--reason": "omit it: who holds a node, and since when, is written with the hold",
  "--release": ends,
  "--remove": ends,
  "-v": "use lastcall version",
  "-w": follow,
  "--server": otherCluster,
  "--watch": follow,
  "-l": labelled,
  "--policy": "use -f FILE with plan, drain-plan and run, and --policy FILE with simulate",
  "--selector": labelled,
};

/** What a word after the command is meant for, where it takes none. */
export const wordHabits: Readonly<Record<string, string>> = {
  freeze: "use --policy NAME, or lastcall hold NODE for single nodes",
};

export const longHabits = Object.keys(optionHabits).filter((name) => name.startsWith("--"));

export function insteadOf(found: string): string | undefined {
  const name = found.replace(/=.*/s, "");
  return name.startsWith("-") ? optionHabits[name] : commandHabits[name];
}
