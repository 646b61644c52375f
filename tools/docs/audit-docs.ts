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

\`lastcall audit\` reports the grace period that each workload requests, what it really gets when a Spot
node is interrupted, and what else makes the workload unsuitable for Spot nodes.

\`\`\`
lastcall audit -f k8s/ --platform gke              # manifests, in CI
helm template chart | lastcall audit -f - --platform gke
lastcall audit --from cluster.json                 # what kubectl get nodes,pods,pdb,deploy -A -o json wrote
lastcall audit                                     # the live cluster
\`\`\`

## Platforms

A pod's grace period is the smaller of what it requests and what its priority group gets. Without
\`--platform\`, the nodes of the input decide; without nodes: ${defaultPlatformNames.join(", ")}. A finding
on several platforms is shown once, with a list of them; \`-o json\` and \`-o yaml\` have one for each.

| platform | regular pods | critical pods | what it is |
|---|---|---|---|
${platformRows().join("\n")}
| \`kubelet:30s/15s\` | total less critical | as given | \`shutdownGracePeriod\` and \`shutdownGracePeriodCriticalPods\` |
| \`kubelet:FILE\` | as configured | as configured | a KubeletConfiguration, also by priority |

Each budget has a source: \`Read\` from the node's kubelet, \`File\` from a configuration file,
\`Default\` as the platform ships it, or \`Unknown\`. On Autopilot the setting cannot be read, so the
default is used. A configured budget is what was requested; it does not prove that the kubelet got
its inhibitor lock.

On a live cluster, kubelets are queried only on request. \`--ask-kubelets=direct\` connects to port
10250 of each Spot node with your own token. It needs \`get\` on \`nodes/configz\` (before Kubernetes
1.33 on \`nodes/proxy\`), network access to the nodes, and serving certificates signed by the cluster's
CA, or \`--kubelet-insecure-tls\`. \`--ask-kubelets=proxy\` goes through the API server and needs
\`nodes/proxy\`, **which amounts to a shell in every pod of every node**: do not grant it for this
alone. A node that does not respond is audited with the defaults of its platform, and named. Tested against
the server, authentication and authorization of the kubelet of Kubernetes 1.36 without containers
(\`test/e2e/kubelet.e2e.test.ts\`), but not on a cloud's nodes.

## Rules

The rules with the worst impact come first.

| rule | at worst | finds |
|---|---|---|
${rules.join("\n")}

## Which workloads

\`--scope Possible\`, the default, judges every workload that may run on Spot nodes: all that do not exclude them by
their node selector or required affinity. GKE's Spot pools have no taint, so that a workload which says nothing may well
run there, and a check must not be green because it looked at nothing. Where Spot nodes are only a part of the cluster
and have a taint, \`--scope Named\` judges those that name Spot nodes in selector, required affinity or tolerations, as
[at admission](#at-admission), and stderr says how many of how many these are. It is also meant for charts of others,
which name nobody's nodes: some ask for 300 to 600 s of grace. What it leaves out is marked: \`outOfScope\` in JSON,
\`properties.outOfScope\` of the run in SARIF, one notice on GitHub.

## Living with findings

- \`--fail-on error|warning|info|never\` sets the lowest severity that makes the exit code 3; the
  default is \`error\`.
- The annotation \`lastcall.dev/audit-ignore: "single-replica: a pause is fine"\` on the workload or
  its pods ignores one rule, with a reason. Separate several entries with semicolons or line breaks.
- \`--baseline FILE\` accepts the findings of a saved \`-o json\` report, so that only new findings
  fail.
- An entry that ignores nothing, and an object that only looks like a workload (a \`Deployment\` of
  \`v1\`), are named on stderr.
- Custom resources are listed as not judged, because no file shows which pods a Prometheus or a Kafka creates:
  audit the live cluster, or a recording with the workloads or pods that they own, to see those. A custom resource with a pod template is judged if
  \`--template-path Sandbox.example.com=spec.template\` gives its path, also on a live cluster; Argo's
  \`Rollout\` and OpenKruise's \`CloneSet\`, \`StatefulSet\` and \`DaemonSet\` in a file are built in.
- An object that is in the input twice, such as a base next to what is rendered from it, is judged in each file, and its
  pods count once: if the copies differ, a budget that allows an eviction only by one of them is a warning.

## Live

The leader audits the cluster ten minutes after it has become leader and then every six hours
(\`run --audit-every\`; \`0\` turns it off). Each policy gets the condition \`SpotReady\` for its own
nodes. Its message states how many workloads are cut, at how many seconds, what else was found, and
an example. Two gauges have the numbers: \`lastcall_audit_findings{policy,rule,severity}\`
and \`lastcall_audit_workloads{policy,platform,grace="Cut|Whole"}\`.

It lists workloads, budgets, autoscalers and Services in pages of 100, one namespace at a time, and
keeps none of them; \`lastcall-audit\` in \`deploy/base/rbac.yaml\` is all that it needs. With 3,000
workloads, 4,500 Services and budgets and 1,000 nodes, one audit makes 93 requests, takes 0.6 s of
one core and 8 MiB at its peak, and keeps none of that memory. Pods are not read, so pods of custom
resources are not judged here; budgets are the platform's defaults.

If a departure does not end a pod cleanly, the Departure and the Event name the rule that predicts it:
\`status.drain.notClean[].rule\` of the Departure.

## At admission

\`lastcall setup admission\` prints a ValidatingAdmissionPolicy that reports the same as
[grace-cut](grace-cut.md) when a workload is applied.

\`\`\`
lastcall setup admission | kubectl apply -f -                     # a warning, GKE's 15 s
lastcall setup admission --platform kubelet:60s/20s --action Deny # a refusal, with another budget
\`\`\`

- \`--action Warn|Deny|Audit\`: the user is warned, the object is denied, or the API server's audit log
  records it. With Deny, an existing object can still be changed as long as its pod template is
  unchanged.
- \`--platform\`: as for the audit; default \`gke\`. The budget is in the ConfigMap
  \`lastcall-grace-budget\`, in the namespace of \`-n\` (default \`lastcall\`, which must exist), so it can
  be changed without the policy. If a kubelet has more than two groups, the regular and the critical
  one are used.
- \`--scope Named|Possible\`: workloads that name Spot nodes in selector, affinity or tolerations, or
  all that do not exclude them.

The annotation \`lastcall.dev/audit-ignore: "grace-cut: <reason>"\`, on the workload or on its pods, applies
here as well. A grace period of exactly 30 s passes, because the API server sets that default before it evaluates
the policy. To change the set-up, apply it again over the existing one: after all bindings had been deleted first,
an API server 1.36.3 was seen to keep using the previous budget.

## In CI

Lastcall is in no package registry yet, and \`npx lastcall\` outside of a checkout would run whatever package has that
name: install the package that [\`npm run release\`](../release.md) builds, from your own file server.

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
    - name: our own manifests, all of which run on Spot nodes
      run: lastcall audit -f k8s/ --platform gke -o github
    - name: rendered charts of others
      run: lastcall audit -f rendered/ --platform gke --scope Named -o github
\`\`\`

An annotation is on the line of the field that it is about, if it is about one, such as
\`terminationGracePeriodSeconds\`; without that field, on the nearest line around it. Beyond the first 500 findings, it
is on the first line of the object.

\`-o sarif\` is for code scanning, which rejects a whole log if one finding has no file. Standard
input appears as the file \`stdin\`, with the line numbers of the input; to see the text next to a
finding, write Helm's output to a file in the repository and audit that. Findings of a live cluster
have no file: they are for other consumers of SARIF.

Next to each alert, code scanning shows the rule's \`help\`: why, the fix, and when not to use the rule. Nothing is to be
set for that. It shows no \`helpUri\` ([microsoft/sarif-sdk 2813](https://github.com/microsoft/sarif-sdk/pull/2813)); other
viewers, such as that of Visual Studio Code, link to it. If you publish the folder \`docs\`, \`--docs-url
https://docs.example.com/lastcall\` gives each rule one, the address of its page.

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
