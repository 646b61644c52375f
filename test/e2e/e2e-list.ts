/**
 * Which end-to-end tests run when; `e2e-list.test.ts` checks that each file is in one of the lists.
 *
 * `npm run e2e`, and with it CI, runs those of `atEachLanding`: one file for each seam and each
 * promise that only a real control plane shows. `npm run e2e:all` runs the others too. Whoever
 * changes what one of these covers runs it, and a release needs all of them.
 */

/** What each shows that nothing cheaper does. */
export const atEachLanding: Readonly<Record<string, string>> = {
  // Seams: a fake passes the same contract, or CEL and RBAC exist on a real API server only.
  "kube-api.contract": "the real API server does what the model does",
  "board.contract": "the board's feed of the real API server is that of the model",
  "queue-client.contract": "the AWS SDK with moto does what the fake queue does",
  "policy-corpus": "the CRD's rules in CEL and our own checks give one answer",
  kubelet: "the audit reads a real kubelet's configuration",
  "demo-kubectl": "the real kubectl works with the model cluster of the demo",
  "reserve-capacity": "the real scheduler places and preempts placeholders",

  // Rights, guards and installation.
  chart: "the chart installs what kustomize installs, and uninstalls it",
  "kustomize-example": "the kustomizations in the pages install images of one's own registry",
  "setup-rights": "the documented rights of those who set it up suffice",
  "agent-rights": "a stolen agent's token is limited to its own node, by any verb",
  "agent-departure": "an agent's Departures are limited to its own node",
  "agent-marks": "a person's cordon outlasts the marks that a stolen agent's token writes",
  guards: "admission policies refuse the abuse of each stolen token, however installed",
  "pod-security": "installed pods and placeholders satisfy the restricted standard",
  "restart-owner": "the permission to restart owners allows one annotation",
  admission: "`lastcall admission` works as an admission policy",
  "spot-ready": "the audit runs with the controller's own rights",
  doctor: "the doctor finds each fault of an installation, and none where there is none",
  rights: "RBAC grants everything that these files use (all files: and nothing else)",

  // Promises about a fleet, judged by an onlooker.
  signals: "the notices of every cloud drain their nodes, and withdrawn ones give them back",
  burst: "twenty notices at once are drained in time",
  stubborn: "pods with slow, deaf and failing ends get their grace and no more",
  rotation: "nine nodes leave one after another as planned",
  article: "the article's installation is taken over by its own values, and rotates",
  crash: "a controller killed at twenty instants is succeeded by one that completes its work",
  "two-controllers": "one of two replicas acts, and the other takes over",
  "long-faults": "faults that last longer than every timeout cost nothing else",
  "agent-fallback": "an agent alone drains its node within the notice, by its own rights",
  actions: "actions are run, resumed after a kill, and taken back",
  board: "the board in a browser acts with the user's rights, and with no others",
};

export interface RunOnChange {
  /** Whoever changes one of these runs the file. */
  readonly covers: readonly string[];
  /** What shows the same at each landing: on the model, or a part of it. Empty: nothing does. */
  readonly meanwhile: readonly string[];
}

export const onChange: Readonly<Record<string, RunOnChange>> = {
  // Further ways a fleet leaves.
  chaos: {
    covers: ["src/controller", "src/kube"],
    meanwhile: ["test/fault-machine/fault-machine.test.ts", "test/controller/drain-chaos.test.ts"],
  },
  depart: {
    covers: ["src/cli/commands/depart.ts", "src/controller/departure"],
    meanwhile: ["test/cli/depart.test.ts", "test/controller/manual.test.ts"],
  },
  "gang-workload": {
    covers: ["src/kube/gate-source.ts", "src/core/cluster/gang-object.ts"],
    meanwhile: ["test/kube/gate-source.test.ts", "test/controller/gate.test.ts"],
  },
  leaderless: {
    covers: ["src/controller", "src/core/plan"],
    meanwhile: ["test/e2e/crash.e2e.test.ts", "test/controller/leader.test.ts"],
  },
  "api-outage": {
    covers: ["src/kube/http", "src/kube/watch"],
    meanwhile: ["test/e2e/long-faults.e2e.test.ts", "test/fault-machine/fault-durations.test.ts"],
  },
  "api-fault": {
    covers: ["src/kube/http"],
    meanwhile: ["test/controller/api-fault.test.ts"],
  },
  "black-hole": {
    covers: ["src/kube/http"],
    meanwhile: ["test/kube/http/dead-connection.test.ts"],
  },
  "other-machine": {
    covers: ["src/controller/departure", "src/kube/node"],
    meanwhile: ["test/controller/other-machine.test.ts", "test/kube/node/evict.test.ts"],
  },
  "before-drain": {
    covers: ["src/core/capacity", "src/controller/departure"],
    meanwhile: [
      "test/controller/reserve-capacity.test.ts",
      "test/e2e/reserve-capacity.e2e.test.ts",
    ],
  },
  "job-disruption": {
    covers: ["src/kube/node", "src/core/drain"],
    meanwhile: ["test/kube/node/evict.test.ts", "test/e2e/kube-api.contract.e2e.test.ts"],
  },
  "drain-parity": {
    covers: ["src/core/drain-plan", "src/core/drain"],
    meanwhile: ["test/cli/drain-plan.test.ts"],
  },
  "crd-skew": {
    covers: ["deploy/crds", "src/config/schema"],
    meanwhile: ["test/config/crd.test.ts", "test/kube/object/foreign-departure.test.ts"],
  },

  // Clouds and whoever else owns machines.
  queue: {
    covers: ["src/cloud/aws/queue"],
    meanwhile: [
      "test/e2e/signals.e2e.test.ts",
      "test/e2e/queue-client.contract.e2e.test.ts",
      "test/cloud/aws/queue/sqs-feed.test.ts",
    ],
  },
  "compute-engine": {
    covers: ["src/cloud/gcp"],
    meanwhile: ["test/e2e/signals.e2e.test.ts", "test/cloud/gcp/preemption-feed.test.ts"],
  },
  "release-check": {
    covers: ["src/controller/release-checks.ts", "src/core/policy/release-answer.ts"],
    meanwhile: [
      "test/controller/release-check.test.ts",
      "test/cloud/gcp/compute-releaser.test.ts",
      "test/e2e/long-faults.e2e.test.ts",
    ],
  },
  "release-elsewhere": {
    covers: ["src/cloud/aws", "src/cloud/azure", "src/cloud/release"],
    meanwhile: [
      "test/cloud/aws/ec2-releaser.contract.test.ts",
      "test/cloud/azure/aks-releaser.contract.test.ts",
      "test/e2e/rotation.e2e.test.ts",
    ],
  },
  karpenter: {
    covers: ["src/kube/node-claim-releaser.ts", "src/cloud/release"],
    meanwhile: ["test/kube/node-claim-releaser.test.ts", "test/cli/controller-rights.test.ts"],
  },
  "aws-actions": {
    covers: ["src/cloud/aws/actions"],
    meanwhile: ["test/cloud/aws/actions/runner.contract.test.ts", "test/e2e/actions.e2e.test.ts"],
  },
  "aws-actions-crash": {
    covers: ["src/cloud/aws/actions", "src/controller/action"],
    meanwhile: ["test/controller/action-crash.test.ts", "test/e2e/actions.e2e.test.ts"],
  },
  "aws-rules": {
    covers: ["src/cloud/aws/setup/setup-documents.ts"],
    meanwhile: ["test/deploy/aws-iac.test.ts"],
  },
  "terraform-module": {
    covers: ["deploy/aws/terraform"],
    meanwhile: ["test/deploy/aws-iac.test.ts"],
  },
  responder: {
    covers: ["src/cli/lambda", "src/cloud/aws/actions"],
    meanwhile: ["test/cli/lambda/responder.test.ts"],
  },

  // Commands.
  "bad-input": {
    covers: ["src/cli"],
    meanwhile: ["test/cli/cluster-faults.test.ts", "test/cli/mistakes.test.ts"],
  },
  migrate: {
    covers: ["src/migrate", "src/cli/migrate"],
    meanwhile: ["test/cli/migrate.test.ts", "test/e2e/article.e2e.test.ts"],
  },
  agent: {
    covers: ["src/agent"],
    meanwhile: ["test/cli/agent-process.test.ts", "test/e2e/signals.e2e.test.ts"],
  },
  "getting-started": {
    covers: ["docs/getting-started.md", "src/cloud/setup"],
    meanwhile: ["test/cli/command-examples.test.ts", "test/e2e/setup-rights.e2e.test.ts"],
  },
  "model-kubectl": {
    covers: ["src/sim/api", "src/sim/http", "src/sim/cluster-controllers"],
    meanwhile: ["test/contract/model-kube-api.test.ts", "test/e2e/demo-kubectl.e2e.test.ts"],
  },

  // Further values of the chart.
  "chart-values": {
    covers: ["deploy/chart"],
    meanwhile: ["test/e2e/chart.e2e.test.ts"],
  },
  "chart-odd-values": {
    covers: ["deploy/chart"],
    meanwhile: ["test/e2e/chart.e2e.test.ts"],
  },
  "chart-combined": {
    covers: ["deploy/chart"],
    meanwhile: ["test/e2e/chart.e2e.test.ts"],
  },
  "chart-pods": {
    covers: ["deploy/chart"],
    meanwhile: ["test/e2e/chart.e2e.test.ts"],
  },
  "chart-pod-combinations": {
    covers: ["deploy/chart"],
    meanwhile: ["test/e2e/chart.e2e.test.ts"],
  },
  "chart-refused": {
    covers: ["deploy/chart", "src/config/policy", "src/config/options"],
    meanwhile: ["test/config/resolve-options.test.ts"],
  },
  "chart-placement": {
    covers: ["deploy/chart", "deploy/base"],
    meanwhile: ["test/config/deploy.test.ts"],
  },
  "chart-notes": {
    covers: ["deploy/chart"],
    meanwhile: ["test/e2e/chart.e2e.test.ts"],
  },
  "chart-killer": {
    covers: ["deploy/chart", "src/migrate"],
    meanwhile: ["test/e2e/article.e2e.test.ts"],
  },
  "critical-class": {
    covers: ["deploy/base", "deploy/agent", "deploy/chart"],
    meanwhile: ["test/e2e/chart.e2e.test.ts", "test/e2e/pod-security.e2e.test.ts"],
  },
  helmfile: {
    covers: ["deploy/chart", "docs/migrate.md"],
    meanwhile: ["test/e2e/article.e2e.test.ts"],
  },

  // Further pages of the board.
  "board-page": {
    covers: ["src/web", "src/server", "src/board", "docs/board.md"],
    meanwhile: [
      "test/e2e/board.e2e.test.ts",
      "test/web/live-board.test.ts",
      "test/web/act-buttons.test.ts",
    ],
  },
  "board-demo": {
    covers: ["src/web", "src/cli/demo"],
    meanwhile: ["test/e2e/board.e2e.test.ts", "test/cli/demo-stage.test.ts"],
  },
  "board-pictures": {
    covers: ["src/web", "docs/board"],
    meanwhile: ["test/web/time-text.test.ts", "test/web/sentence.test.ts"],
  },
  "board-bare": {
    covers: [
      "src/board",
      "src/cli/board",
      "src/kube/access",
      "src/kube/caller-name.ts",
      "src/kube/object/translate-node.ts",
    ],
    meanwhile: [
      "test/e2e/board.e2e.test.ts",
      "test/cli/board-command.test.ts",
      "test/kube/access/credential-cache.test.ts",
      "test/board/act-says.test.ts",
    ],
  },
  "board-prometheus": {
    covers: ["src/board/outcome", "deploy/prometheus"],
    meanwhile: ["test/cli/prometheus-outcomes.test.ts", "test/server/alerts.test.ts"],
  },

  // The tools of the tests, and of a release.
  "control-plane": {
    covers: ["test/controlplane", "test/support"],
    meanwhile: ["test/e2e/kube-api.contract.e2e.test.ts"],
  },
  release: {
    covers: ["tools", "deploy/images", ".github/workflows", "package.json"],
    meanwhile: [],
  },
};

/**
 * Files that run two at a time. The first spend most of their time waiting: for instants of a plan,
 * for leases and for timeouts; the longest comes first. The last ask many short questions, none of
 * which is about time. The other files keep the processor busy, or measure how fast something is.
 */
export const paired: readonly string[] = [
  "queue",
  "release-elsewhere",
  "agent-fallback",
  "release-check",
  "leaderless",
  "long-faults",
  "article",
  "actions",
  "api-outage",
  "crash",
  "rotation",
  "two-controllers",
  "depart",
  "compute-engine",
  "crd-skew",
  "other-machine",
  "karpenter",
  "policy-corpus",
  "chart",
  "restart-owner",
  "agent-marks",
  "guards",
  "admission",
  "setup-rights",
  "spot-ready",
  "reserve-capacity",
  "agent-rights",
  "agent-departure",
  "pod-security",
];
