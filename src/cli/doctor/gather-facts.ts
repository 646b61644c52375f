import { audit } from "../../audit/audit.ts";
import type { InstanceReleaser, Releasability, ReleaserChoice } from "../../contracts/cloud.ts";
import type { KubeApi, KubeObject } from "../../contracts/kube-api.ts";
import { detachState } from "../../core/action/action-plan.ts";
import { type NodeFacts, parseProviderId } from "../../core/cluster/node.ts";
import { textMapOf } from "../../core/json/json-field.ts";
import { type Policy, selectPolicy } from "../../core/policy/policy.ts";
import { ownerProblem, releaseModeOf } from "../../core/policy/release-answer.ts";
import { type Instant, minutes, plus } from "../../core/time/time.ts";
import {
  type AlertFacts,
  agentRights,
  controllerRights,
  type DoctorFacts,
  type Fact,
  known,
  type MachineFacts,
  type QueueFacts,
  unknown,
  type WorkloadFacts,
} from "../../doctor/facts.ts";
import { liveLeases } from "../../kube/lease/lease-store.ts";
import {
  budgetsPath,
  daemonSetsPath,
  departuresPath,
  nodesPath,
  podsPath,
  policiesPath,
} from "../../kube/object/api-call.ts";
import { translateDeparture } from "../../kube/object/translate-departure.ts";
import { translateNode } from "../../kube/object/translate-node.ts";
import { translateBudget } from "../../kube/object/translate-pod.ts";
import { listAll } from "../../kube/watch/collection.ts";
import { actionHosts, alertGate, type CloudPorts } from "../assemble/controller-ports.ts";
import { ClusterClock } from "../cluster/connect.ts";
import { readCluster } from "../cluster/read-cluster.ts";
import type { CommandIo } from "../command-line/command.ts";
import { version } from "../commands/version.ts";
import {
  boundPolicies,
  definitionFacts,
  fact,
  leaseFacts,
  leftPodNames,
  missingDate,
  objectAt,
  policyFacts,
  quotaClasses,
  rightsOfAccount,
  serverFacts,
} from "./cluster-facts.ts";
import { otherToolsIn, ownPods, ownWorkload } from "./own-workloads.ts";

/** Queries to services other than the API server. */
export interface Outside {
  machines(facts: Pick<DoctorFacts, "nodes" | "policies">): Promise<readonly MachineFacts[]>;
  /** Long-running machines in the groups of the given ones that are not nodes. */
  orphans(
    beside: readonly MachineFacts[],
    nodes: readonly NodeFacts[],
    signal: AbortSignal,
  ): Promise<readonly string[]>;
  queue(
    controller: WorkloadFacts | undefined,
    signal: AbortSignal,
  ): Promise<QueueFacts | undefined>;
}

interface Gathering {
  readonly api: KubeApi;
  readonly io: CommandIo;
  /** The namespace of the controller. Default: all namespaces are searched. */
  readonly namespace: string | undefined;
  readonly outside: Outside;
}

type ObjectList = Fact<readonly KubeObject[]>;

const admission = "/apis/admissionregistration.k8s.io/v1";
const deploymentsPath = "/apis/apps/v1/deployments";

/** Collects all facts that the checks evaluate, without changing anything. */
export async function gatherFacts(gathering: Gathering): Promise<DoctorFacts> {
  const { api, io } = gathering;
  const server = await fact(io, (signal) => serverFacts(api, io.clock, signal));
  if (server.kind === "Unknown") return silentFacts(gathering, server);
  const listed = [nodesPath, policiesPath].map((path) => fact(io, () => listAll(api, path)));
  const lists = await Promise.all([...listed, workloadList(gathering)]);
  const [nodeList, policyList, workloads] = lists as [ObjectList, ObjectList, ObjectList];
  const nodes = mapped(nodeList, (all) => all.map(translateNode));
  const policies = mapped(policyList, policyFacts);
  const own = (component: "controller" | "agent") =>
    mapped(workloads, (all) => ownWorkload(all, component, gathering.namespace));
  const [controller, agent] = [own("controller"), own("agent")];
  const namespace = namespaceOf(gathering, controller);
  const wide = clusterWide(gathering);
  const local = installation(gathering, { controller, agent, namespace });
  const beyond = outsideFacts(gathering, { nodes, policies, controller });
  const [cluster, installed, outside] = await Promise.all([wide, local, beyond]);
  return {
    ...{
      version,
      inPod: isInPod(io),
      namespace,
      nodes,
      policies,
      controller,
      agent,
    },
    api: mapped(server, (found) => found),
    clockAheadMs: await fact(io, async () => server.value.aheadMs ?? missingDate()),
    otherTools: mapped(workloads, otherToolsIn),
    ...cluster,
    ...installed,
    ...outside,
  };
}

/** Kubernetes sets this in every pod. In the controller's pod, its credentials are available. */
function isInPod({ env }: CommandIo): boolean {
  return (env.KUBERNETES_SERVICE_HOST ?? "") !== "";
}

function namespaceOf(
  { namespace }: Gathering,
  controller: Fact<WorkloadFacts | undefined>,
): string {
  const found = controller.kind === "Known" ? controller.value?.namespace : undefined;
  return namespace ?? found ?? "lastcall";
}

/** Every Deployment and DaemonSet, with its kind, which lists omit. */
function workloadList({ api, io }: Gathering): Promise<ObjectList> {
  return fact(io, async () => {
    const kinds = { Deployment: deploymentsPath, DaemonSet: daemonSetsPath };
    const lists = Object.entries(kinds).map(async ([kind, path]) =>
      (await listAll(api, path)).map((one) => ({ ...one, kind })),
    );
    return (await Promise.all(lists)).flat();
  });
}

async function clusterWide({ api, io }: Gathering) {
  const list = <Value>(path: string, read: (all: readonly KubeObject[]) => Value) =>
    fact(io, async () => read(await listAll(api, path)));
  const [definitions, departures, budgets, leftPods, admissionPolicies, priorityClasses, grace] =
    await Promise.all([
      fact(io, (signal) => definitionFacts(api, signal)),
      list(departuresPath, (all) => all.flatMap((one) => translateDeparture(one) ?? [])),
      list(budgetsPath, (all) => all.map(translateBudget)),
      fact(io, async () =>
        leftPodNames(await listAll(api, podsPath, { fieldSelector: "status.phase=Failed" })),
      ),
      fact(io, async () =>
        boundPolicies(
          await listAll(api, `${admission}/validatingadmissionpolicies`),
          await listAll(api, `${admission}/validatingadmissionpolicybindings`),
        ),
      ),
      list("/apis/scheduling.k8s.io/v1/priorityclasses", namesOf),
      // With ten thousand workloads this reads the whole cluster.
      fact(io, (signal) => graceFacts(api, signal), minutes(2)),
    ]);
  return { definitions, departures, budgets, leftPods, admissionPolicies, priorityClasses, grace };
}

function namesOf(objects: readonly KubeObject[]): ReadonlySet<string> {
  return new Set(objects.map(({ metadata }) => metadata?.name ?? ""));
}

async function graceFacts(api: KubeApi, signal: AbortSignal) {
  const { objects } = await readCluster({ api, signal });
  const sources = objects.map((json) => ({ json, origin: "Recorded" }) as const);
  const { summary, findings } = audit({ sources, platforms: [] });
  const [worst] = findings;
  return {
    errors: summary.findings.error,
    worst: worst && `${worst.rule} of ${worst.object}`,
  };
}

async function installation(
  { api, io }: Gathering,
  found: {
    readonly controller: Fact<WorkloadFacts | undefined>;
    readonly agent: Fact<WorkloadFacts | undefined>;
    readonly namespace: string;
  },
) {
  const { namespace } = found;
  const inNamespace = (resource: string) => `/api/v1/namespaces/${namespace}/${resource}`;
  const accountOf = (one: Fact<WorkloadFacts | undefined>, otherwise: string) => ({
    namespace,
    name: (one.kind === "Known" ? one.value?.serviceAccount : undefined) ?? otherwise,
  });
  const account = accountOf(found.controller, "lastcall");
  const [rights, ofAgent, lease, otherLeaders, at, pods, annotations, classes] = await Promise.all([
    fact(io, (signal) => rightsOfAccount(api, account, controllerRights, signal)),
    fact(io, (signal) =>
      rightsOfAccount(api, accountOf(found.agent, "lastcall-agent"), agentRights, signal),
    ),
    // In parallel, because one real second can be an hour in a demo, and a Lease expires sooner.
    fact(io, (signal) => leaseFacts(api, namespace, signal)),
    fact(io, async (signal) => {
      const at = await clusterTime(api, io);
      const leases = await liveLeases(api, { name: "lastcall", at, signal });
      return (leases ?? []).filter((one) => one.namespace !== namespace);
    }),
    clusterTime(api, io),
    fact(io, async () => ownPods(await listAll(api, inNamespace("pods")))),
    fact(io, async (signal) => {
      const path = inNamespace(`serviceaccounts/${account.name}`);
      return textMapOf((await objectAt(api, path, signal))?.metadata?.annotations);
    }),
    fact(io, async () => quotaClasses(await listAll(api, inNamespace("resourcequotas")))),
  ]);
  return {
    rights,
    agentRights: ofAgent,
    at,
    lease,
    otherLeaders,
    ownPods: pods,
    accountAnnotations: annotations,
    quotaClasses: classes,
  };
}

async function clusterTime(api: KubeApi, { clock, signal }: CommandIo): Promise<Instant> {
  const clusterClock = new ClusterClock(api, clock);
  await clusterClock.find(signal);
  return clusterClock.now();
}

async function outsideFacts(
  { io, outside }: Gathering,
  found: Pick<DoctorFacts, "nodes" | "policies" | "controller">,
) {
  const { controller, policies } = found;
  const machines =
    found.nodes.kind === "Unknown" ? found.nodes : known(await outside.machines(found));
  const [orphanMachines, queue, alerts] = await Promise.all([
    found.nodes.kind === "Unknown" || machines.kind === "Unknown"
      ? unknown("no nodes could be listed")
      : orphansBeside({ io, outside }, { machines: machines.value, nodes: found.nodes.value }),
    controller.kind === "Unknown"
      ? controller
      : fact(io, (signal) => outside.queue(controller.value, signal)),
    alertFacts({ policies, controller }, io),
  ]);
  return { machines, orphanMachines, queue, alerts };
}

function orphansBeside(
  { io, outside }: Pick<Gathering, "io" | "outside">,
  { machines, nodes }: { machines: readonly MachineFacts[]; nodes: readonly NodeFacts[] },
): Promise<Fact<readonly string[]>> {
  return fact(io, (signal) => outside.orphans(machines, nodes, signal));
}

/** Asks only the hosts that the controller may reach, since a policy must not choose others. */
function alertFacts(
  { policies, controller }: Pick<DoctorFacts, "policies" | "controller">,
  io: CommandIo,
): Promise<readonly AlertFacts[]> {
  const gates = (policies.kind === "Known" ? policies.value.policies : []).flatMap(
    ({ name, gates: { alerts } }) => (alerts === undefined ? [] : [{ policy: name, alerts }]),
  );
  return Promise.all(
    gates.map(async ({ policy, alerts }) => ({
      policy,
      firing:
        controller.kind === "Unknown"
          ? controller
          : await fact(io, async (signal) => {
              const allowed = await actionHosts(controller.value?.options["action-hosts"]);
              return alertGate({ allowed, ...io })(alerts, signal);
            }),
    })),
  );
}

function mapped<From, To>(from: Fact<From>, map: (value: From) => To): Fact<To> {
  return from.kind === "Known" ? known(map(from.value)) : from;
}

/** If the API server does not respond, nothing else can be asked. */
function silentFacts({ io, namespace }: Gathering, api: Fact<never>): DoctorFacts {
  const none = unknown("the API server does not respond");
  return {
    ...{ at: io.clock.now(), version, inPod: isInPod(io), api, alerts: [] },
    namespace: namespace ?? "lastcall",
    ...{ clockAheadMs: none, definitions: none, rights: none, agentRights: none },
    ...{ lease: none, otherLeaders: none },
    ...{ controller: none, agent: none, ownPods: none, accountAnnotations: none, nodes: none },
    ...{ policies: none, departures: none, budgets: none, otherTools: none },
    ...{ admissionPolicies: none, quotaClasses: none, priorityClasses: none },
    ...{ machines: none, orphanMachines: none, queue: none, leftPods: none, grace: none },
  };
}

const mostMachines = 3;

/** A machine takes minutes to become a node. */
const nodeAfterMs = minutes(15);

/**
 * Asks the clouds that responded for the running machines of the nodes' groups, and returns those
 * that are old enough but are not nodes. If many have no Node, only a few are examined.
 */
export async function orphanMachines(
  asked: { readonly beside: readonly MachineFacts[]; readonly nodes: readonly NodeFacts[] },
  options: MachineLookOptions & { readonly groupsOf: CloudPorts["groupsOf"] },
  signal: AbortSignal,
): Promise<readonly string[]> {
  const { releaserFor, groupsOf, io } = options;
  const registered = new Set(asked.nodes.map(({ providerID = "" }) => providerID.toLowerCase()));
  const answered = asked.beside.filter(({ state }) => state.kind === "Known");
  const clouds = new Set(answered.map(({ cloud }) => cloud));
  // If groups are looked up for only a few, machines that certainly exist come first.
  const inOrder = [true, false].flatMap((isReady) =>
    asked.nodes.filter(({ ready }) => ready === isReady),
  );
  const askable = inOrder.flatMap(({ providerID = "" }) =>
    clouds.has(parseProviderId(providerID)?.cloud ?? "") ? [providerID] : [],
  );
  const beside = askable.length === 0 ? [] : await groupsOf(askable, signal);
  const unknownOnes = [...new Set(beside)]
    .filter((one) => !registered.has(one.toLowerCase()))
    .slice(0, mostOrphans);
  const old = await Promise.all(
    unknownOnes.map(async (providerID) => {
      const releaser = releaserFor({ providerID, mode: "None" });
      const machine = await releaser?.describe(providerID, signal);
      if (machine?.kind !== "Present" || !machine.running) return [];
      const { bornAt } = machine;
      return bornAt === undefined || plus(bornAt, nodeAfterMs) > io.clock.now() ? [] : [providerID];
    }),
  );
  return old.flat();
}

const mostOrphans = 10;

interface MachineLookOptions {
  readonly releaserFor: ReleaserChoice;
  readonly io: CommandIo;
}

/**
 * Checks the machines of up to three Ready and three NotReady nodes with their clouds, without
 * changing anything: they are looked up, and the permission is queried if the cloud supports that.
 */
export async function machineFacts(
  nodes: readonly NodeFacts[],
  policies: readonly Policy[],
  options: MachineLookOptions,
): Promise<readonly MachineFacts[]> {
  const askable = nodes.filter(
    ({ providerID }) => providerID && options.releaserFor({ providerID, mode: "None" }),
  );
  const some = [true, false].flatMap((isReady) =>
    askable.filter(({ ready }) => ready === isReady).slice(0, mostMachines),
  );
  return Promise.all(some.map((node) => machineOf(node, policies, options)));
}

async function machineOf(
  node: NodeFacts,
  policies: readonly Policy[],
  { releaserFor, io }: MachineLookOptions,
): Promise<MachineFacts> {
  const providerID = node.providerID ?? "";
  const policy = selectPolicy(node, policies)?.policy;
  const mode = policy === undefined ? "None" : releaseModeOf(node, policy.instance);
  const detach = policy && detachState(policy.actions, { cause: "Planned", records: [] });
  const releaser = releaserFor({ providerID, mode }) as InstanceReleaser;
  const state = await fact(io, async (signal) => {
    const found = await releaser.describe(providerID, signal);
    if (found.kind === "Absent") return found;
    const { running, bornAt } = found;
    return { kind: "Present", running, launchKnown: bornAt !== undefined } as const;
  });
  const facts = {
    ...{ node: node.name, providerID, cloud: parseProviderId(providerID)?.cloud ?? "" },
    ...{ nodeReady: node.ready, mode, state },
  };
  if (mode === "None") return facts;
  const problem = ownerProblem(node, mode);
  const release = await fact<Releasability>(io, async (signal) =>
    problem === undefined
      ? releaser.check({ providerID, mode, detach }, signal)
      : { kind: "Impossible", problem },
  );
  return { ...facts, release };
}
