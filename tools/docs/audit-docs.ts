import { defaultPlatformNames, knownPlatforms } from "../../src/audit/platform.ts";
import type { Rule, RuleExample } from "../../src/audit/report.ts";
import { ruleList } from "../../src/audit/rule-list.ts";
import { formatDuration, seconds } from "../../src/core/time/time.ts";

/** The generated pages of `docs/audit/`, by path: one per rule, and the list of all rules. */
export function generateAuditDocs(): ReadonlyMap<string, string> {
  const pages = ruleList.map((rule): [string, string] => [
    `docs/audit/${rule.id}.md`,
    rulePage(rule),
  ]);
  return new Map([["docs/audit/README.md", overview()], ...pages]);
}

function overview(): string {
  const rules = ruleList.map(
    (rule) => `| [${rule.id}](${rule.id}.md) | ${rule.severity} | ${rule.title} |`,
  );
  return `# The audit

\`lastcall audit\` says what each workload asks for and what it will really get when a Spot node is
taken, and what else speaks against running it there.

\`\`\`
lastcall audit -f k8s/ --platform gke              # manifests, in CI
helm template chart | lastcall audit -f - --platform gke
lastcall audit --from cluster.json                 # what kubectl get nodes,pods,pdb,deploy -A -o json wrote
lastcall audit                                     # the live cluster
\`\`\`

## Platforms

A pod's grace is the smaller of what it asks for and what its priority group gets. Without
\`--platform\` the nodes of the input decide; where there are none: ${defaultPlatformNames.join(", ")}.

| platform | regular pods | critical pods | what it is |
|---|---|---|---|
${platformRows().join("\n")}
| \`kubelet:30s/15s\` | total less critical | as given | \`shutdownGracePeriod\` and \`shutdownGracePeriodCriticalPods\` |
| \`kubelet:FILE\` | as configured | as configured | a KubeletConfiguration, also by priority |

Each budget says where it comes from: \`Read\` from the node's kubelet, \`File\` as somebody wrote it
down, \`Default\` as the platform ships it, \`Unknown\` where nobody knows. On Autopilot the setting
cannot be read: there it is the default. A configured budget is what was asked for, no proof that
the kubelet got its inhibitor.

On a live cluster kubelets are asked only where you say so. \`--ask-kubelets=direct\` goes to port
10250 of each Spot node with your own token and needs \`get\` on \`nodes/configz\` (before Kubernetes
1.33 on \`nodes/proxy\`), a way to the nodes, and serving certificates that the cluster's authority has
signed, or \`--kubelet-insecure-tls\`. \`--ask-kubelets=proxy\` goes through the API server and needs
\`nodes/proxy\`, **which amounts to a shell in every pod of every node**: do not grant it for this
alone. A node that does not answer is audited with the defaults of its platform, and named. Tried against
the server, authentication and authorization of the kubelet of Kubernetes 1.36, which here had no
containers to run (\`test/e2e/kubelet.e2e.test.ts\`); not on a cloud's nodes.

## Rules

Ordered by what hurts first.

| rule | at worst | finds |
|---|---|---|
${rules.join("\n")}

## Living with findings

- \`--fail-on error|warning|info|never\` decides from where on the exit code is 3; the default is
  \`error\`.
- The annotation \`lastcall.dev/audit-ignore: "single-replica: a pause is fine"\` on the workload or
  its pods sets one rule aside, with a reason. Several are separated by semicolons or lines.
- \`--baseline FILE\` accepts what a saved \`-o json\` report already holds, so that only new findings
  fail.
- An entry that ignores nothing, and an object that only looks like a workload (a \`Deployment\` of
  \`v1\`), are named on stderr.
- Custom resources are listed as not judged: what pods a Prometheus or a Kafka makes, no file shows. One that
  holds a pod template is judged where \`--template-path Sandbox.example.com=spec.template\` says where it is; a
  \`Rollout\` of Argo in a file is known. A live cluster is asked for the kinds that are named so.
  Audit the live cluster to see them.

## Live

The controller that leads audits the cluster ten minutes after it has begun to lead and then every
six hours (\`run --audit-every\`; \`0\` turns it off). Each policy gets the condition \`SpotReady\`, for
its own nodes, with one sentence: how many workloads are cut, at how many seconds, what else was
found, and an example. Two gauges carry the numbers: \`lastcall_audit_findings{policy,rule,severity}\`
and \`lastcall_audit_workloads{policy,platform,grace="Cut|Whole"}\`.

It lists workloads, budgets, autoscalers and Services in pages of 100, one namespace at a time, and
keeps none of them; \`lastcall-audit\` in \`deploy/base/rbac.yaml\` is all that it needs. Of 3,000
workloads, 4,500 Services and budgets and 1,000 nodes, one audit asks 93 times, takes 0.6 s of one
core and 8 MiB at its peak, and keeps nothing of it. Pods are not read, so that pods of custom
resources are not judged here; budgets are what the platform ships.

When a departure ends a pod badly, the ledger and the Event name the rule that foretells it:
\`status.drain.notClean[].rule\` of the Departure.

## At admission

\`lastcall setup admission\` prints a ValidatingAdmissionPolicy that says the same as
[grace-cut](grace-cut.md) when somebody applies a workload.

\`\`\`
lastcall setup admission | kubectl apply -f -                     # a warning, GKE's 15 s
lastcall setup admission --platform kubelet:60s/20s --action Deny # a refusal, a budget of one's own
\`\`\`

- \`--action Warn|Deny|Audit\`: the user is told, the object is refused, or the server's audit log
  says so. With Deny an object that is there already can still be changed, as long as its pods stay
  as they are.
- \`--platform\`: as for the audit, \`gke\` without it. The budget is the ConfigMap
  \`lastcall-grace-budget\`, in the namespace of \`-n\` (\`lastcall\` without it, which must exist), so
  that it can be changed without the policy. Of a kubelet with more groups than two, the regular
  and the critical one count.
- \`--scope Named|Possible\`: workloads that name Spot nodes in selector, affinity or tolerations, or
  all that do not keep off them.

The annotation \`lastcall.dev/audit-ignore: "grace-cut: <reason>"\`, on the workload or on its pods, counts
here, too. A grace of exactly 30 s passes, because the API server has filled it in before it asks. Change the
set-up by applying it again, over what is there: where all its bindings had been deleted first, an API
server 1.36.3 was seen to go on with the budget of before.

## In CI

Lastcall is in no package registry yet, and \`npx lastcall\` outside of a checkout would run whatever is there by that
name: install the package that [\`npm run release\`](../release.md) makes, from where you keep it.

\`\`\`yaml
# .github/workflows/audit.yaml
name: audit
on: pull_request
jobs:
  audit:
    runs-on: ubuntu-latest
    steps:
    - uses: actions/checkout@v4
    - run: npm install --global https://files.example.com/lastcall-0.1.0.tgz
    - run: lastcall audit -f k8s/ --platform gke -o github
\`\`\`

\`-o sarif\` is for code scanning, which refuses a whole log when one finding has no file. Standard
input is the file \`stdin\` in it, with the lines of what was read; to see the text beside a finding,
write what Helm makes into a file of the repository, and name that. Findings of a live cluster have
no file: they are for other readers of SARIF.

\`\`\`yaml
# .pre-commit-config.yaml
repos:
- repo: local
  hooks:
  - id: lastcall-audit
    name: lastcall audit
    language: system
    entry: lastcall audit --platform gke -f k8s/
    pass_filenames: false
    files: ^k8s/.*\\.ya?ml$
\`\`\`
`;
}

function platformRows(): readonly string[] {
  return Object.entries(knownPlatforms).map(([name, { totalSeconds, criticalSeconds, what }]) => {
    const regular = totalSeconds === 0 ? "none" : periodOf(totalSeconds - criticalSeconds);
    const critical = totalSeconds === 0 ? "none" : periodOf(criticalSeconds);
    return `| \`${name}\` | ${regular} | ${critical} | ${what} |`;
  });
}

function periodOf(count: number): string {
  return formatDuration(seconds(count));
}

function rulePage(rule: Rule): string {
  return `# ${rule.id}

At worst ${article(rule.severity)}: ${rule.title}.

${rule.why}

## ✗ Flagged

${example(rule.bad)}

## ✓ Passes

${example(rule.good)}

## Fix

${rule.fix}

## When not to use it

${rule.whenNotToUse}
`;
}

function article(severity: Rule["severity"]): string {
  return severity === "warning" ? "a warning" : severity === "error" ? "an error" : "information";
}

function example({ yaml, platforms = ["gke"] }: RuleExample): string {
  return `Judged against ${platforms.map((name) => `\`${name}\``).join(", ")}.\n\n\`\`\`yaml\n${yaml}\`\`\``;
}
