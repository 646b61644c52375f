import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type CliResult, type ModelCli, modelCli } from "../support/model-cli.ts";
import { ModelWorld, spotPolicy } from "../support/model-world.ts";

/**
 * Typical mistakes, and what is said about each. The page docs/mistakes.md is written from this
 * table: `vitest -u` rewrites it.
 */
interface Mistake {
  /** The command as typed after `lastcall`; `POLICY` stands for a file with `policy`. */
  readonly typed: string;
  /** The spec of a policy, as YAML in one line. */
  readonly policy?: string;
  readonly exit: 0 | 1 | 2 | 3;
  /** The parts that have to be said: what was found, where, and what to do. */
  readonly says: readonly string[];
}

const plan = "plan -f POLICY --from nodes.json";
const inPolicy = (policy: string, ...says: readonly string[]): Mistake => {
  return { typed: plan, policy, exit: 2, says };
};

const instant = "2026-12-01T00:00:00Z";

const mistakes: Readonly<Record<string, readonly Mistake[]>> = {
  "In a policy": [
    inPolicy("lifetime: {max: 24 hours}", "spec.lifetime.max", '"24 hours" (24h?)'),
    inPolicy("lifetime: {max: 1d}", "spec.lifetime.max", '"1d" (24h?)'),
    inPolicy("lifetime: {max: 7d}", "spec.lifetime.max", '"7d" (168h?)'),
    inPolicy("lifetime: {max: 24}", "spec.lifetime.max", "found 24, expected a duration"),
    inPolicy("lifetime: {maximum: 24h}", "spec.lifetime.maximum", "max"),
    inPolicy("lifetime: {min: 26h, max: 24h}", "spec.lifetime.max", "under a min of 26h"),
    inPolicy("nodeSelector: {pool: x}", "spec.nodeSelector", "nodeSelectorTerms", "pool"),
    inPolicy("nodeSelector: {matchLabels: {pool: x}}", "spec.nodeSelector", "nodeSelectorTerms"),
    inPolicy(
      "nodeSelector: {matchExpressions: [{key: pool, operator: Exists}]}",
      "spec.nodeSelector.matchExpressions",
      "expected nodeSelectorTerms: [{matchExpressions: […]}]",
    ),
    inPolicy(
      "nodeSelector: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: []}}",
      "spec.nodeSelector.requiredDuringSchedulingIgnoredDuringExecution",
      "expected nodeSelectorTerms: [{matchExpressions: […]}]",
    ),
    {
      ...{ typed: plan, policy: "nodeSelector: {nodeSelectorTerms: []}", exit: 0 },
      says: ["spec.nodeSelector has no term and selects no node", "omit it"],
    },
    inPolicy("spacing: {min: 900}", "spec.spacing.min", "found 900"),
    inPolicy("spacing: {mode: late}", "spec.spacing.mode", '"late"', "Late"),
    inPolicy(
      'windows: [{timeZone: Berlin, start: "22:00", end: "06:00"}]',
      "timeZone",
      "Europe/Berlin?",
    ),
    inPolicy(
      'windows: [{timeZone: CEST, start: "22:00", end: "06:00"}]',
      "timeZone",
      "Europe/Berlin?",
    ),
    {
      ...{ typed: plan, policy: 'windows: [{start: "22:00", end: "06:00"}]', exit: 0 },
      says: ["spec.windows has no effect", "spec.lifetime.max"],
    },
    inPolicy(
      'windows: [{name: n, start: "22:00", end: "06:00"}]',
      "spec.windows[0].name",
      "found false (n, no and off without quotes are false in YAML), expected a name",
    ),
    inPolicy('windows: [{start: "22", end: "06:00"}]', "spec.windows[0].start", '"22"'),
    inPolicy('windows: [{start: "10pm", end: "6am"}]', "spec.windows[0].start", '"10pm"'),
    inPolicy('windows: [{start: "06:00", end: "06:00"}]', "spec.windows[0]"),
    inPolicy(
      'windows: [{days: [Monday], start: "22:00", end: "23:00"}]',
      "days[0]",
      '"Monday"',
      "Mon",
    ),
    inPolicy(
      'windows: [{days: Mon, start: "22:00", end: "23:00"}]',
      "days",
      '"Mon"',
      "a list: [Mon]",
    ),
    inPolicy('windows: [{days: [], start: "22:00", end: "23:00"}]', "days", "an empty list"),
    inPolicy('windows: [{type: allow, start: "22:00", end: "23:00"}]', "type", "Allow"),
    inPolicy('windows: [{cron: "0 22 * * *"}]', "spec.windows[0].duration", "6h"),
    inPolicy('windows: [{cron: "0 0 22 * * *", duration: 6h}]', "spec.windows[0].cron", "five"),
    inPolicy("budgets: [{nodes: 0}]", "spec.budgets[0].nodes"),
    inPolicy('budgets: [{nodes: "10"}]', "spec.budgets[0].nodes", '"10"'),
    inPolicy("budgets: [{percent: 10}]", "spec.budgets[0].percent"),
    inPolicy("budgets: [{nodes: 10%, scope: zone}]", "spec.budgets[0].scope", "Zone"),
    inPolicy("budgets: {nodes: 1}", "spec.budgets", "an object", "list"),
    inPolicy("gates: {freezeUntil: tomorrow}", "spec.gates.freezeUntil", '"tomorrow"', "RFC 3339"),
    inPolicy("gates: {freezeUntil: 2026-12-01}", "spec.gates.freezeUntil", "RFC 3339"),
    inPolicy("instance: {release: recreate}", "spec.instance.release", "Recreate"),
    inPolicy("onNotice: {spotInterruption: drain}", "spec.onNotice.spotInterruption", "Drain"),
    inPolicy("drain: {timeout: 5 min}", "spec.drain.timeout", '"5 min" (5m?)'),
    inPolicy("paused: yes please", "spec.paused", "true or false"),
    inPolicy("windws: []", "spec.windws", "windows"),
    inPolicy("5", "spec: found 5, expected an object"),
    inPolicy("weight: high", "spec.weight", '"high"', "a whole number"),
    inPolicy("lifetime: 24h", "spec.lifetime", '"24h"', "an object with min, max, reserve"),
    inPolicy("lifetime: {max: -1h}", "spec.lifetime.max", '"-1h"', "a duration"),
    inPolicy("lifetime: {max: 24h, max: 12h}", "spec.lifetime.max", "a second time"),
    inPolicy("lifetime: {max: 24h, reserve: 25h}", "spec.lifetime.reserve", "25h", "less than"),
    inPolicy("windows: [22:00-06:00]", "spec.windows[0]", '"22:00-06:00"', "an object"),
    inPolicy("budgets: [{}]", "spec.budgets[0]", "nodes or perHour"),
    inPolicy("budgets: [{nodes: 110%}]", "spec.budgets[0].nodes", '"110%"', "1% to 100%"),
    inPolicy("nodeSelector: pool=spot", "spec.nodeSelector", "nodeSelectorTerms"),
    inPolicy('paused: "true"', "spec.paused", '"true"', "true or false"),
    inPolicy("actions: [{name: a, at: BeforeDrain}]", "spec.actions[0]", "one type of action"),
    inPolicy("budgets: [{nodes: 10 %}]", "spec.budgets[0].nodes", '"10 %" (10%?)'),
    inPolicy("drain: {budgetShare: 0.5}", "spec.drain.budgetShare", "found 0.5 (50%?)"),
    inPolicy("drain: {budgetShare: 50}", "spec.drain.budgetShare", "found 50 (50%?)"),
    inPolicy(
      "gates: {blockingPods: {matchLabels: {job: batch}}}",
      "spec.gates.blockingPods",
      "an object",
      "a list: [{matchLabels: …}]",
    ),
    inPolicy(
      "budgets: [{nodes: 2, perHour: 3}]",
      "spec.budgets[0].perHour",
      "one budget for nodes",
    ),
    inPolicy('lifetime: {max: "1:00"}', "spec.lifetime.max", '"1:00"', "such as 90s or 12h30m"),
    inPolicy("waves: {sizes: [0, 2]}", "spec.waves.sizes[0]", "found 0", "at least 1"),
    inPolicy('windows: [{cron: "@daily", duration: 6h}]', "spec.windows[0].cron", "five cron"),
  ],
  "In files": [
    { typed: "plan -f empty.yaml --from nodes.json", exit: 2, says: ["empty.yaml:1", "no policy"] },
    { typed: "plan -f POLICY --from empty.yaml", exit: 2, says: ["found nothing", "kubectl get"] },
    { typed: "plan -f folder --from nodes.json", exit: 2, says: ["folder", "no .yaml"] },
    { typed: "plan -f POLICY --from folder", exit: 2, says: ["folder", "no .json"] },
    { typed: "plan -f tabs.yaml --from nodes.json", exit: 2, says: ["tabs.yaml:5", "Tabs"] },
    { typed: "plan -f open.yaml --from nodes.json", exit: 2, says: ["open.yaml:", "invalid YAML"] },
    {
      typed: "plan -f nodes.json --from nodes.json",
      exit: 2,
      says: ['"NodeList"', "expected Dep"],
    },
    { typed: "plan -f POLICY --from POLICY", exit: 2, says: ["DeparturePolicy and no Node"] },
    { typed: "plan -f - --from -", exit: 2, says: ["standard input twice"] },
    { typed: "plan -f POLICY -f POLICY", exit: 2, says: ["metadata.name", "a unique name"] },
    { typed: "audit -f empty.yaml", exit: 2, says: ["empty.yaml", "expected manifests"] },
    { typed: "audit -f folder", exit: 2, says: ["folder", "expected manifests"] },
    { typed: "audit --baseline nodes.json -f POLICY", exit: 2, says: ["a saved AuditReport"] },
    { typed: "simulate folder", exit: 2, says: ["folder: it is a directory"] },
    { typed: "migrate estafette --values nodes.json", exit: 2, says: ["NodeList", "values"] },
    { typed: "plan --kubeconfig folder", exit: 2, says: ["kubeconfig folder: it is a directory"] },
    { typed: "plan --kubeconfig nodes.json", exit: 2, says: ["nodes.json", "current-context"] },
    { typed: "plan --kubeconfig none", exit: 2, says: ["kubeconfig none: there is no such file"] },
    {
      typed: "plan -f https://example.com/policy.yaml",
      exit: 2,
      says: ["https://example.com/policy.yaml", "an address", "-f -"],
    },
    { typed: "plan --config POLICY", exit: 2, says: ["apiVersion", "an unknown option"] },
  ],
  "On the command line": [
    { typed: "plna", exit: 2, says: ["plna", "did you mean plan?"] },
    { typed: "plan --frm nodes.json", exit: 2, says: ["--frm", "did you mean --from?"] },
    { typed: "plan --polcy spot.yaml", exit: 2, says: ["--polcy", "-f FILE"] },
    { typed: "plan -f", exit: 2, says: ["--filename", "no value"] },
    { typed: "plan -n x --watch", exit: 2, says: ["--watch", "use lastcall board --tui"] },
    { typed: "plan -v", exit: 2, says: ["-v", "use lastcall version"] },
    { typed: "demo --port 80", exit: 2, says: ["--port, expected one that lastcall demo --help"] },
    { typed: "plan -f nothing.yaml", exit: 2, says: ["nothing.yaml"] },
    { typed: "plan --from nodes.json --at tomorrow", exit: 2, says: ["--at", "22:00", "RFC 3339"] },
    { typed: "plan -o jsn", exit: 2, says: ["--output", '"jsn"', "json"] },
    { typed: "plan -A", exit: 2, says: ["-A", "omit it"] },
    { typed: "plan -l pool=spot", exit: 2, says: ["-l", "lastcall depart"] },
    { typed: "drain node-1", exit: 2, says: ["drain", "lastcall depart NODE"] },
    { typed: "uncordon node-1", exit: 2, says: ["kubectl delete departure"] },
    {
      typed: "--context prod plan",
      exit: 2,
      says: ["before the command", "lastcall plan --context"],
    },
    { typed: "audit manifests/", exit: 2, says: ["pass files with -f"] },
    { typed: "audit -f POLICY --platform gke-99", policy: "{}", exit: 2, says: ["gke-99"] },
    {
      ...{ typed: "audit -f POLICY --platform GKE", policy: "{}", exit: 2 },
      says: ['"GKE" (did you mean gke?)'],
    },
    {
      ...{ typed: "audit -f POLICY --platform gke,eks", policy: "{}", exit: 2 },
      says: ['"gke,eks"', "--platform once for each"],
    },
    {
      typed: "audit -f POLICY --platform kubelet:30",
      exit: 2,
      says: ["kubelet:30", "without a unit", "kubelet:30s/15s"],
    },
    {
      typed: "audit -f POLICY --platform kubelet:10s/15s",
      exit: 2,
      says: ["15 s for critical pods are more than the 10 s"],
    },
    { typed: "plan --help=yes", exit: 2, says: ["--help", "without a value"] },
    { typed: "depart node-1 --in 2h", exit: 2, says: ["--in", "--at 2h"] },
    { typed: "drain-plan node-1 --notice 0s", exit: 2, says: ['"0s"', "at least 1s"] },
    { typed: "hold node-1 --undo --for 4h", exit: 2, says: ["--for", "--undo", "remove one"] },
    {
      typed: "depart node-1 -l pool=spot",
      exit: 2,
      says: ["node-1 and -l pool=spot", "one of the two"],
    },
    { typed: "demo --hours 3", exit: 2, says: ["--hours", "--headless"] },
    { typed: "board --tui --open", exit: 2, says: ["--open", "--tui", "remove one"] },
    { typed: "setup aws --aply", exit: 2, says: ["did you mean --apply?"] },
    { typed: "drain-plan", exit: 2, says: ["no argument was given, expected NODE"] },
    { typed: "drain-plan ip-10-0-0-1", exit: 1, says: ["did you mean ip-10-0-0-1.ec2.internal?"] },
    {
      typed: "drain-plan node-1 --notice 2min",
      exit: 2,
      says: ["--notice", '"2min" (2m?)', "90s"],
    },
    { typed: "depart", exit: 2, says: ["expected NODE… or -l SELECTOR"] },
    { typed: "depart ip-10-0-0-1", exit: 1, says: ["did you mean ip-10-0-0-1.ec2.internal?"] },
    { typed: "depart NODE-1", exit: 1, says: ["did you mean node-1?"] },
    { typed: "depart -l =x", exit: 2, says: ["--selector", '"=x"', "a label selector such as"] },
    { typed: "hold -l pool==x=y --for 1h", exit: 2, says: ["--selector", '"pool==x=y"'] },
    {
      ...{ typed: "depart node-1 --ignore-daemonsets", exit: 2 },
      says: ["--ignore-daemonsets", "omit it", "DaemonSet"],
    },
    {
      ...{ typed: "depart node-1 --grace-period=30", exit: 2 },
      says: ["--grace-period", "own grace period"],
    },
    { typed: "depart node-1 --force", exit: 2, says: ["--force", "spec.drain"] },
    { typed: "depart nobody", exit: 1, says: ["there is no such node", "kubectl get nodes"] },
    { typed: "depart node-1 --at 10pm", exit: 2, says: ["--at", '"10pm"', "22:00"] },
    { typed: "depart node-1 --at 0s", exit: 2, says: ['found "0s", expected a time'] },
    { typed: "plan -f --from nodes.json", exit: 2, says: ["--filename", "no value but --from"] },
    { typed: "plan --from nodes.json --at -2h", exit: 2, says: ["--at", '"-2h"', "22:00"] },
    { typed: "plan wide", exit: 2, says: ["found wide", "no argument"] },
    { typed: "depart --all", exit: 2, says: ["--all", "use -l SELECTOR"] },
    {
      typed: "depart node-1,ip-10-0-0-1.ec2.internal",
      exit: 1,
      says: ["did you mean node-1 ip-10-0-0-1.ec2.internal?"],
    },
    { typed: "hold node-1 --until now", exit: 2, says: ["--until now", "or --undo"] },
    { typed: "freeze node-1 --for 1h", exit: 2, says: ["--policy NAME", "lastcall hold NODE"] },
    { typed: "freeze --policy --for 1h", exit: 2, says: ["--policy: found no value"] },
    { typed: "freeze --all --for 0s", exit: 2, says: ["--for", '"0s"', "at least 1s"] },
    { typed: "audit -f POLICY --scope named", exit: 2, says: ['"named"', "Named or Possible"] },
    { typed: "doctor --fail-on error", exit: 2, says: ['"error"', "warn or fail"] },
    { typed: "demo --speed fast", exit: 2, says: ["--speed", '"fast"', "a number"] },
    { typed: "board --address 80", exit: 2, says: ["--address", "127.0.0.1:8087"] },
    { typed: "migrate kops", exit: 2, says: ['"kops"', "estafette or nth"] },
    { typed: "completion powershell", exit: 2, says: ['"powershell"', "bash, zsh or fish"] },
    { typed: "thaw", exit: 2, says: ["use lastcall freeze --undo"] },
    { typed: "why node-1", exit: 2, says: ["use lastcall plan, or kubectl describe departure"] },
    { typed: "list", exit: 2, says: ["use lastcall plan"] },
    { typed: "unfreeze", exit: 2, says: ["use lastcall freeze --undo"] },
    {
      typed: "depart node-1 --by 2020-01-01T00:00:00Z",
      exit: 2,
      says: ["--by", "the departure starts now", "a later"],
    },
    {
      typed: "depart node-1 --wait --dry-run",
      exit: 2,
      says: ["--wait", "--dry-run", "remove one"],
    },
    { typed: "depart node-1 --timeout 5m", exit: 2, says: ["--timeout", "--wait"] },
    { typed: "depart -l pool=none", exit: 1, says: ["no node has the labels pool=none"] },
    { typed: "hold node-1 --for 4hours", exit: 2, says: ["--for", '"4hours" (4h?)', "a duration"] },
    { typed: `hold node-1 --for 4h --until ${instant}`, exit: 2, says: ["remove one of the two"] },
    { typed: "freeze --until 22:00", exit: 2, says: ["--policy NAME or --all"] },
    { typed: "freeze --all", exit: 2, says: ["--until TIME, --for DURATION or --undo"] },
    { typed: "freeze --policy spt --for 1h", exit: 1, says: ["did you mean spot?"] },
    { typed: "run --leader-elect=maybe", exit: 2, says: ["--leader-elect", "true or false"] },
    { typed: "setup gke", exit: 2, says: ["gke", "did you mean gcp?"] },
    { typed: "plan --context prod", exit: 2, says: ["prod"] },
    { typed: "doctor -n lastcal", exit: 3, says: ["the namespace lastcal does not exist"] },
  ],
  'On a node: lastcall.dev/hold="4 hours"': [
    { typed: "plan", exit: 0, says: ['"4 hours"', "expected", "4h"] },
  ],
};

const head = "apiVersion: lastcall.dev/v1alpha1\nkind: DeparturePolicy\nmetadata: {name: spot}\n";
const files = ["nodes.json", "empty.yaml", "tabs.yaml", "open.yaml", "folder", "none"];

let world: ModelWorld;
let cli: ModelCli;
let folder: string;

beforeAll(async () => {
  world = new ModelWorld();
  for (const name of ["node-1", "ip-10-0-0-1.ec2.internal"]) world.addNode(name, "a");
  world.patchNode("node-1", { metadata: { annotations: { "lastcall.dev/hold": "4 hours" } } });
  spotPolicy(world, { lifetime: { max: "24h" } });
  cli = await modelCli(world);
  folder = await mkdtemp(join(tmpdir(), "lastcall-mistakes-"));
  const list = world.get("/api/v1/nodes");
  await writeFile(join(folder, "nodes.json"), JSON.stringify({ ...list, kind: "NodeList" }));
  await mkdir(join(folder, "folder"));
  await writeFile(join(folder, "empty.yaml"), "");
  await writeFile(join(folder, "tabs.yaml"), `${head}spec:\n\tlifetime: {max: 24h}\n`);
  await writeFile(join(folder, "open.yaml"), `${head}spec: {lifetime: {max: 24h}\n`);
});

afterAll(async () => {
  await cli.close();
  await rm(folder, { recursive: true });
});

async function resultOf({ typed, policy }: Mistake): Promise<CliResult> {
  const file = join(folder, "policy.yaml");
  await writeFile(file, `${head}spec:\n  ${policy ?? "{}"}\n`);
  const words = typed.split(" ").map((word) => {
    if (word === "POLICY") return file;
    return files.includes(word) ? join(folder, word) : word;
  });
  const { stdout, stderr, exit } = await cli.run(words);
  return { exit, stdout, stderr: withoutFolders(stderr) };
}

/** The page shows the names of files alone. */
function withoutFolders(text: string): string {
  return text.replaceAll(`${folder}/`, "").replaceAll(/\/\S*\/(?=kubeconfig)/g, "");
}

/** The line that answers the mistake: that of a check, or the first error. */
function answerIn({ stdout, stderr }: CliResult, { says }: Mistake): string {
  const lines = [...stderr.split("\n"), ...stdout.split("\n")].map((line) => line.trim());
  return lines.find((line) => says.every((part) => line.includes(part))) ?? stderr + stdout;
}

const told = new Map<Mistake, string>();

describe.each(Object.entries(mistakes))("%s, a mistake", (_, list) => {
  it.each(list)("is answered: $policy $typed", async (mistake) => {
    const result = await resultOf(mistake);
    const answer = answerIn(result, mistake);
    for (const part of mistake.says) expect(answer).toContain(part);
    expect(result.exit).toBe(mistake.exit);
    told.set(mistake, answer);
  });
});

it("docs/mistakes.md shows what is said of each", async () => {
  const code = (text: string) => `\`${text.replaceAll("|", "\\|").replaceAll("`", "'")}\``;
  const parts = Object.entries(mistakes).flatMap(([title, list]) => [
    `## ${title}\n`,
    "| mistake | what is said |\n|---|---|",
    ...list.map((one) => {
      const { typed, policy } = one;
      const shown = typed === plan && policy !== undefined ? policy : `lastcall ${typed}`;
      return `| ${code(shown.replaceAll("POLICY", "policy.yaml"))} | ${code(told.get(one) ?? "")} |`;
    }),
    "",
  ]);
  const intro = [
    "<!-- Written by test/cli/mistakes.test.ts; vitest -u rewrites it. -->",
    "# Mistakes, and what is said about them\n",
    "Typical mistakes, each typed into the program, and its answer: what was found, where, and what to write instead. The",
    "first table shows fields of a policy with `lastcall plan -f policy.yaml`; the API server answers `kubectl apply` with the",
    "same rules. [Errors](errors.md) lists the codes, [troubleshooting](troubleshooting.md) the reasons.\n",
  ];
  await expect([...intro, ...parts].join("\n")).toMatchFileSnapshot("../../docs/mistakes.md");
});
