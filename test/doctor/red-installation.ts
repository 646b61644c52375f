import type { FailedPod } from "../../src/core/cluster/pod.ts";
import { hours, millis, minus, seconds } from "../../src/core/time/time.ts";
import { type DoctorFacts, known, unknown } from "../../src/doctor/facts.ts";
import { LastcallError } from "../../src/errors.ts";
import { at, nodeOf } from "./green-facts.ts";
import {
  agent,
  definitions,
  drainer,
  hidden,
  lease,
  pod,
  type RedCase,
  unscheduled,
  withController,
  withPodTrial,
  withTrial,
} from "./red-cases.ts";

const spotLabels = { "cloud.google.com/gke-spot": "true" };

function ofHost(name: string) {
  const matchExpressions = [
    { key: "kubernetes.io/hostname", operator: "In" as const, values: [name] },
  ];
  return { nodeSelectorTerms: [{ matchExpressions, matchFields: [] }] };
}

/** A pod of the node n0, which was created two hours ago, that failed an hour ago by itself. */
function failedPod(name: string, more: Partial<FailedPod>): FailedPod {
  const then = minus(at, hours(1));
  return {
    ...{ namespace: "default", name, uid: name, nodeName: "n0", reason: "Evicted" },
    controller: { kind: "ReplicaSet", name: "web", uid: "web" },
    ...{ createdAt: then, startedAt: then, ...more },
  };
}

export const redInstallation: readonly RedCase[] = [
  ["api", "Fail", "no answer", { api: unknown("no answer") }],
  ["api", "Fail", "Kubernetes v1.29.1", { api: known({ major: 1, minor: 29, name: "v1.29.1" }) }],
  ["clock", "Warn", "3 s ahead of", { clockAheadMs: known(millis(3000)) }],
  ["clock", "Fail", "20 s behind", { clockAheadMs: known(millis(-20_000)) }],
  ["crds", "Fail", "departures.lastcall.dev", { definitions: known([]) }],
  ["crds", "Fail", "not served", definitions({ established: false })],
  ["crd-version", "Fail", "do not serve v1alpha1", definitions({ served: ["v1"] })],
  ["crd-version", "Warn", "is not that of 1.2.3", definitions({ sameSchema: false })],
  [
    "rights",
    "Fail",
    "may not list nodes",
    { rights: known([{ name: "list nodes", allowed: false }]) },
  ],
  ["agent-rights", "Fail", "may not", { agentRights: known([{ name: "x", allowed: false }]) }],
  [
    "reader",
    "Warn",
    "1 request refused",
    { budgets: unknown("no", new LastcallError("RIGHT_MISSING", "no")) },
  ],
  [
    "namespace",
    "Fail",
    "the namespace lastcall does not exist",
    { home: known({ exists: false, controllerIn: "ops" }) },
  ],
  ["rights", "Skip", "no controller is installed", { controller: known(undefined) }],
  [
    "agent-rights",
    "Skip",
    "a fallback is not known: --fallback may be set in the ConfigMap x",
    {
      agent: known({ ...agent, hiddenOptions: [{ option: undefined, place: "the ConfigMap x" }] }),
    },
  ],
  ["accounts", "Fail", "share", { agent: known({ ...agent, serviceAccount: "lastcall" }) }],
  [
    "accounts",
    "Fail",
    "uses the ServiceAccount default",
    withController({ serviceAccount: "default" }),
  ],
  [
    "admission",
    "Fail",
    "an agent may report another node: no admission policy refuses it",
    withTrial({ forbidden: { kind: "Accepted" } }),
  ],
  [
    "admission",
    "Fail",
    "an agent may not report its node: too strict",
    withTrial({ needed: { kind: "Denied", policy: "other", message: "too strict" } }),
  ],
  [
    "admission",
    "Skip",
    "may report another node is not known: violates PodSecurity",
    withTrial({
      forbidden: { kind: "Denied", policy: undefined, message: "violates PodSecurity" },
    }),
  ],
  [
    "admission",
    "Skip",
    "may report another node is not known: no answer",
    withTrial({ forbidden: { kind: "Unknown", why: "no answer" } }),
  ],
  [
    "admission",
    "Skip",
    "may report its node is not known: no answer",
    withTrial({ needed: { kind: "Unknown", why: "no answer" } }),
  ],
  [
    "admission",
    "Skip",
    "the caller may not act as",
    { agentTrials: unknown("the caller may not act as x") },
  ],
  ["admission", "Skip", "needs two nodes", { agentTrials: known([]) }],
  [
    "priority-quota",
    "Fail",
    "no pod of the agents is admitted: exceeded quota",
    withPodTrial({ kind: "Denied", policy: undefined, message: "exceeded quota: none" }),
  ],
  [
    "priority-quota",
    "Skip",
    "not known: no answer",
    withPodTrial({ kind: "Unknown", why: "no answer" }),
  ],
  [
    "priority-quota",
    "Skip",
    "its creator may not create pods",
    withPodTrial({ kind: "NotGranted" }),
  ],
  ["priority-quota", "Skip", "not tried", { podTrials: unknown("not tried") }],
  [
    "drainers",
    "Warn",
    "6 others have a right by which a node leaves: User 1 (change nodes), User 2 (change nodes), User 3 (change nodes), User 4 (change nodes), User 5 (change nodes) and 1 more",
    { drainers: known([1, 2, 3, 4, 5, 6].map((one) => drainer(`User ${one}`))) },
  ],
  [
    "drainers",
    "Warn",
    "User \ufffdadmin\ufffd[2J",
    { drainers: known([drainer("User \u202eadmin\u001b[2J")]) },
  ],
  [
    "drainers",
    "Fail",
    "1 other has a right by which a node leaves: Group system:authenticated (change nodes)",
    { drainers: known([{ ...drainer("Group system:authenticated"), isEverybody: true }]) },
  ],
  ["drainers", "Skip", "forbidden", { drainers: unknown("forbidden") }],
  [
    "priority-quota",
    "Fail",
    "system-node-critical",
    { quotaClasses: known(new Set(["system-cluster-critical"])) },
  ],
  ["controller", "Fail", "no controller is installed", { controller: known(undefined) }],
  [
    "controller",
    "Fail",
    "none of the controller's 2 replicas is ready",
    withController({ ready: 0 }),
  ],
  ["controller", "Fail", "only replica is not ready", withController({ ready: 0, wanted: 1 })],
  ["controller", "Fail", "has no replica", withController({ ready: 0, wanted: 0 })],
  [
    "controller",
    "Fail",
    "is ready; the scheduler: 0/3 nodes are available",
    { ...withController({ ready: 0 }), ...unscheduled },
  ],
  ["controller", "Warn", "1 of the controller's 2", withController({ ready: 1 })],
  ["controller", "Warn", "no standby", withController({ ready: 1, wanted: 1 })],
  ["lease", "Fail", "no controller has ever led", { lease: known(undefined) }],
  [
    "lease",
    "Fail",
    "all 2 replicas act",
    withController({ options: { "leader-elect": "false" }, overlaps: false }),
  ],
  [
    "lease",
    "Fail",
    "starts a second pod while the first still acts",
    withController({ options: { "leader-elect": "false" }, wanted: 1, ready: 1 }),
  ],
  [
    "lease",
    "Skip",
    "runs without a Lease",
    {
      ...withController({ options: { "leader-elect": "false" }, wanted: 1, overlaps: false }),
      lease: known(undefined),
    },
  ],
  [
    "lease",
    "Skip",
    "--leader-elect may be set in the Secret x",
    { ...withController(hidden("leader-elect")), lease: known(undefined) },
  ],
  ["lease", "Fail", "was released", lease({ holder: undefined })],
  ["lease", "Fail", "last renewed 60 s ago", lease({ renewedAt: minus(at, seconds(60)) })],
  ["lease", "Fail", "last renewed 50h3m ago", lease({ renewedAt: minus(at, seconds(180_185)) })],
  ["lease", "Warn", "a clock that is 30 s ahead", lease({ renewedAt: minus(at, seconds(-30)) })],
  ["dry-run", "Warn", "writes nothing", withController({ options: { "dry-run": "true" } })],
  ["dry-run", "Skip", "--dry-run may be set in the Secret x", withController(hidden("dry-run"))],
  ["chart", "Warn", "the controller is 1.2.2", withController({ image: "lastcall:1.2.2" })],
  [
    "images",
    "Fail",
    "c-1 (ImagePullBackOff)",
    { ownPods: known([{ ...pod, waiting: "ImagePullBackOff" }]) as DoctorFacts["ownPods"] },
  ],
  ["images", "Fail", "c-1 (0/3 nodes are available)", unscheduled],
  [
    "placement",
    "Warn",
    "c-1 on n0",
    { ownPods: known([{ ...pod, node: "n0" }]) as DoctorFacts["ownPods"] },
  ],
  [
    "left-pods",
    "Warn",
    "3 pods left from machines that ended: default/terminated, default/earlier, default/gone",
    {
      failedPods: known([
        failedPod("own", {}),
        failedPod("terminated", { reason: "Terminated" }),
        failedPod("earlier", { createdAt: minus(at, hours(9)), startedAt: minus(at, hours(9)) }),
        failedPod("gone", { nodeName: "n9" }),
        failedPod("never-ran", { nodeName: "n9", startedAt: undefined }),
      ]),
    },
  ],
  [
    "local-volumes",
    "Warn",
    "1 volume will be destroyed with the machine: shop/data-es-0 on n0",
    {
      nodes: known([
        nodeOf("n0", { labels: { ...spotLabels, "kubernetes.io/hostname": "n0" } }),
        nodeOf("n1", { labels: { "kubernetes.io/hostname": "n1" } }),
      ]),
      localVolumes: known([
        { claim: "shop/data-es-0", nodes: ofHost("n0") },
        { claim: "shop/data-es-1", nodes: ofHost("n1") },
      ]),
    },
  ],
  ["placeholder-image", "Fail", "is missing", { priorityClasses: known(new Set<string>()) }],
  [
    "placeholder-image",
    "Fail",
    "cannot pull",
    {
      ownPods: known([
        { ...pod, component: "placeholder", waiting: "ErrImagePull" },
      ]) as DoctorFacts["ownPods"],
    },
  ],
  ["service-account", "Fail", "its node's network", withController({ hostNetwork: true })],
  [
    "service-account",
    "Fail",
    "lack the label",
    { accountAnnotations: known({ "azure.workload.identity/client-id": "x" }) },
  ],
  [
    "service-account",
    "Fail",
    "not the ARN",
    { accountAnnotations: known({ "eks.amazonaws.com/role-arn": "lastcall" }) },
  ],
];
