import type { Impersonation, KubeApi, KubeObject } from "../../contracts/kube-api.ts";
import type { NodeFacts } from "../../core/cluster/node.ts";
import { departureName } from "../../core/departure/departure.ts";
import { fieldsOf } from "../../core/json/json-field.ts";
import { type Instant, plus, seconds } from "../../core/time/time.ts";
import type { AdmissionTrial, OwnPod, PodTrial, WorkloadFacts } from "../../doctor/facts.ts";
import { placeholderImage, placeholderObject } from "../../kube/cluster-capacity.ts";
import { departuresPath, nodePath } from "../../kube/object/api-call.ts";
import { departureObject } from "../../kube/object/translate-departure.ts";
import { answered, checkMayTry, type TrialRequest, tokenOf, tryAs } from "./dry-run.ts";

/** What the trials are made with. */
export interface TrialGround {
  readonly api: KubeApi;
  readonly at: Instant;
  readonly signal: AbortSignal;
  readonly nodes: readonly NodeFacts[];
  readonly pods: readonly OwnPod[];
}

/** A thing that an account has to be able to do, and its abuse, which must be refused. */
interface Pair extends Pick<AdmissionTrial, "act" | "abuse" | "isUsed" | "policyFile"> {
  readonly needed: TrialRequest;
  readonly forbidden: TrialRequest;
}

type TrialSide = Pick<AdmissionTrial, "who"> & {
  readonly workload: WorkloadFacts;
  readonly as: Impersonation;
};

/**
 * Tries whether admission policies limit what a stolen token of an agent can do: requests about its
 * own node must pass, the same requests about another node must not.
 */
export async function agentTrials(
  agent: WorkloadFacts,
  ground: TrialGround,
): Promise<readonly AdmissionTrial[]> {
  await checkMayTry(ground.api, accountOf(agent), ground.signal);
  const [own, other] = twoNodes(ground);
  if (own === undefined || other === undefined) return [];
  const as = tokenOf(accountOf(agent), { node: own.node, pod: own.pod });
  const pairs = [
    reportPair(own, other, ground.at),
    ...["", "/status"].map((part) => markPair(own, other, part)),
    ...podPairs(agent, own, other),
  ];
  return tried({ who: "an agent", workload: agent, as }, pairs, ground);
}

/** The same for the controller's token. */
export async function controllerTrials(
  controller: WorkloadFacts,
  uses: { readonly placeholders: boolean; readonly restarts: boolean },
  ground: TrialGround,
): Promise<readonly AdmissionTrial[]> {
  await checkMayTry(ground.api, accountOf(controller), ground.signal);
  const pod = ground.pods.find(({ component }) => component === "controller");
  const node = ground.nodes.find(({ name }) => name === pod?.node);
  const as = tokenOf(accountOf(controller), { node, pod });
  const pairs = [
    placeholderPair(controller, uses.placeholders),
    restartPair(controller, uses.restarts),
  ];
  return tried({ who: "the controller", workload: controller, as }, pairs, ground);
}

function accountOf({ namespace, serviceAccount }: WorkloadFacts) {
  return { namespace, name: serviceAccount };
}

async function tried(
  { who, workload, as }: TrialSide,
  pairs: readonly Pair[],
  { api, signal }: TrialGround,
): Promise<readonly AdmissionTrial[]> {
  const account = accountOf(workload);
  const ask = (request: TrialRequest) =>
    answered(() => tryAs(api, { account, as, request }, signal));
  return Promise.all(
    pairs.map(async ({ needed, forbidden, ...pair }) => {
      const [allowed, refused] = await Promise.all([ask(needed), ask(forbidden)]);
      return { who, ...pair, needed: allowed, forbidden: refused };
    }),
  );
}

interface TrialPlace {
  readonly node: NodeFacts;
  readonly pod: OwnPod | undefined;
}

/** Two nodes, first those with an agent. */
function twoNodes({ nodes, pods }: TrialGround): readonly TrialPlace[] {
  const agents = pods.filter(({ component }) => component === "agent");
  const places = nodes.map((node) => ({
    node,
    pod: agents.find((pod) => pod.node === node.name),
  }));
  const [taken, free] = [true, false].map((has) =>
    places.filter(({ pod }) => (pod !== undefined) === has),
  );
  return [...(taken ?? []), ...(free ?? [])].slice(0, 2);
}

/** Only the node differs, so a refusal of the other is due to the node. */
function reportPair({ node: own }: TrialPlace, { node: other }: TrialPlace, at: Instant): Pair {
  const report = (node: NodeFacts): TrialRequest => ({
    method: "POST",
    path: departuresPath,
    body: departureObject({
      name: departureName(node),
      node: { name: node.name, uid: node.uid, bootID: node.bootID },
      ...{ cause: "SpotInterruption", source: "agent/gcp/preempted" },
      ...{ noticedAt: at, deadlineAt: plus(at, seconds(30)) },
    }),
  });
  return {
    ...{ act: "report a notice of its own node", isUsed: true, needed: report(own) },
    ...{ abuse: "report a notice of another node", forbidden: report(other) },
    policyFile: "deploy/agent/admission.yaml",
  };
}

/** Granted only with a fallback. */
function markPair({ node: own }: TrialPlace, { node: other }: TrialPlace, part: string): Pair {
  const mark = (node: NodeFacts): TrialRequest => ({
    ...{ method: "PATCH", patchType: "application/merge-patch+json" },
    path: `${nodePath(node.name)}${part}`,
    body: part === "" ? { metadata: marksOf(node), spec: { unschedulable: true } } : {},
  });
  const what = part === "" ? "cordon" : "write the status of";
  return {
    ...{ act: `${what} its own node`, isUsed: true, needed: mark(own) },
    ...{ abuse: `${what} another node`, forbidden: mark(other) },
    policyFile: "deploy/agent-fallback/cordon/admission.yaml",
  };
}

function marksOf(node: NodeFacts): object {
  const key = "lastcall.dev/departure";
  const marked = node.annotations[key];
  const wasCordoned = marked === undefined && node.unschedulable;
  const before = wasCordoned ? { "lastcall.dev/cordoned-before": "true" } : {};
  return { annotations: { [key]: marked ?? departureName(node), ...before } };
}

/** A pod that does not exist: RBAC refuses it all the same, and otherwise the 404 says why. */
const noAgent = "no-agent-on-this-node";
const noUid = "00000000-0000-0000-0000-000000000000";

/** Granted only with the fallback Drain. The pods are agents themselves. */
function podPairs(agent: WorkloadFacts, own: TrialPlace, other: TrialPlace): readonly Pair[] {
  const onPod = ({ pod }: TrialPlace, to: (name: string, uid: string) => TrialRequest) =>
    to(pod?.name ?? noAgent, pod?.uid ?? noUid);
  const path = (name: string) => `/api/v1/namespaces/${agent.namespace}/pods/${name}`;
  const deletion = (name: string, uid: string): TrialRequest => ({
    ...{ method: "DELETE", path: path(name) },
    body: { apiVersion: "v1", kind: "DeleteOptions", preconditions: { uid } },
  });
  const eviction = (name: string, uid: string): TrialRequest => ({
    ...{ method: "POST", path: `${path(name)}/eviction` },
    body: {
      ...{ apiVersion: "policy/v1", kind: "Eviction" },
      metadata: { namespace: agent.namespace, name },
      deleteOptions: { preconditions: { uid }, dryRun: ["All"] },
    },
  });
  const policyFile = "deploy/agent-fallback/drain/admission.yaml";
  return [["delete", deletion] as const, ["evict", eviction] as const].map(([verb, to]) => ({
    ...{ act: `${verb} a pod of its own node`, isUsed: true, needed: onPod(own, to) },
    ...{ abuse: `${verb} a pod of another node`, forbidden: onPod(other, to) },
    policyFile,
  }));
}

/** Both meet every level of Pod Security, so that no other rule hides the one that is tried. */
function placeholderPair({ namespace, options }: WorkloadFacts, isUsed: boolean): Pair {
  const none = { name: "lastcall-doctor", uid: noUid };
  const order = { name: "placeholder-lastcall-doctor", departure: none, tolerations: [] };
  const placement = { requests: {}, nodeSelector: {}, podAffinity: [], podAntiAffinity: [] };
  const pod = placeholderObject(
    { ...order, forPod: { ...none, namespace }, placement },
    { namespace, image: options["placeholder-image"] ?? placeholderImage },
  );
  const { priorityClassName: _, ...spec } = pod.spec as Record<string, unknown>;
  const other = { ...pod, metadata: { name: "lastcall-doctor", namespace }, spec };
  const create = (body: object): TrialRequest => ({
    ...{ method: "POST", path: `/api/v1/namespaces/${namespace}/pods`, body },
  });
  return {
    ...{ act: "create a placeholder", isUsed, needed: create(pod) },
    ...{ abuse: "create any other pod", forbidden: create(other) },
    policyFile: "deploy/base/admission.yaml",
  };
}

/** Granted only with deploy/restart-owner. The workload is the controller's own Deployment. */
function restartPair({ namespace, name }: WorkloadFacts, isUsed: boolean): Pair {
  const patch = (body: object): TrialRequest => ({
    ...{ method: "PATCH", patchType: "application/merge-patch+json", body },
    path: `/apis/apps/v1/namespaces/${namespace}/deployments/${name}`,
  });
  const annotations = { "lastcall.dev/restarted-for": noUid };
  const other = { ...annotations, "lastcall.dev/doctor": "dry-run" };
  return {
    ...{ act: "restart a workload", isUsed },
    needed: patch({ spec: { template: { metadata: { annotations } } } }),
    abuse: "change anything else in a workload",
    forbidden: patch({ spec: { template: { metadata: { annotations: other } } } }),
    policyFile: "deploy/restart-owner/admission.yaml",
  };
}

/**
 * Tries whether one more pod of a workload would be admitted: quotas, Pod Security and whatever
 * else the cluster has. Its creator is the one that Kubernetes' controller manager uses.
 */
export async function podTrial(
  tested: {
    readonly who: string;
    readonly creator: string;
    readonly workload: KubeObject | undefined;
  },
  { api, signal }: TrialGround,
): Promise<readonly PodTrial[]> {
  const { who, creator, workload } = tested;
  if (workload === undefined) return [];
  const account = { namespace: "kube-system", name: creator };
  await checkMayTry(api, account, signal);
  const { name, namespace } = workload.metadata ?? {};
  const { metadata, spec } = fieldsOf(fieldsOf(workload.spec).template);
  const body = {
    ...{ apiVersion: "v1", kind: "Pod", spec },
    metadata: { ...fieldsOf(metadata), generateName: `${name}-`, namespace },
  };
  const request = { method: "POST", path: `/api/v1/namespaces/${namespace}/pods`, body } as const;
  const asked = { account, as: tokenOf(account, {}), request };
  return [{ who, answer: await answered(() => tryAs(api, asked, signal)) }];
}
