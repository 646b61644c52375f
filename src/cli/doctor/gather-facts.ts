import { audit } from "../../audit/audit.ts";
import type { KubeApi, KubeObject } from "../../contracts/kube-api.ts";
import type { NodeFacts } from "../../core/cluster/node.ts";
import { textMapOf } from "../../core/json/json-field.ts";
import { type Instant, minutes } from "../../core/time/time.ts";
import {
  type AlertFacts,
  type DoctorFacts,
  type Fact,
  type HomeFacts,
  known,
  type MachineFacts,
  optionOf,
  type PolicyFacts,
  type QueueFacts,
  unknown,
  type WorkloadFacts,
} from "../../doctor/facts.ts";
import {
  agentRights,
  controllerRights,
  fallbackRights,
  restartRights,
} from "../../doctor/rights.ts";
import { liveLeases } from "../../kube/lease/live-lease.ts";
import {
  budgetsPath,
  daemonSetsPath,
  departuresPath,
  namespacesPath,
  nodesPath,
  podsPath,
  policiesPath,
} from "../../kube/object/api-call.ts";
import { translateDeparture } from "../../kube/object/translate-departure.ts";
import { translateNode } from "../../kube/object/translate-node.ts";
import { translateBudget, translateFailedPod } from "../../kube/object/translate-pod.ts";
import { listAll } from "../../kube/watch/collection.ts";
import { actionHosts, alertGate } from "../assemble/controller-ports.ts";
import { ClusterClock } from "../cluster/connect.ts";
import { readCluster } from "../cluster/read-cluster.ts";
import type { CommandIo } from "../command-line/command.ts";
import { version } from "../commands/version.ts";
import {
  definitionFacts,
  fact,
  leaseFacts,
  localVolumeFacts,
  missingDate,
  objectAt,
  policyFacts,
  quotaClasses,
  rightsOfAccount,
  serverFacts,
} from "./cluster-facts.ts";
import { drainersIn } from "./drainers.ts";
import { otherToolsIn, ownAccounts, ownPods, ownWorkload, workloadFacts } from "./own-workloads.ts";
import { trialFacts, usesOf } from "./trial-facts.ts";

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

const rbac = "/apis/rbac.authorization.k8s.io/v1";
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
  const home = await homeFacts(gathering, workloads);
  const found = mapped(isMissing(home) ? noNamespace(gathering) : workloads, (all) => ({
    controller: ownWorkload(all, "controller", gathering.namespace),
    agent: ownWorkload(all, "agent", gathering.namespace),
  }));
  const controller = mapped(found, (own) => own.controller && workloadFacts(own.controller));
  const agent = mapped(found, (own) => own.agent && workloadFacts(own.agent));
  const namespace = namespaceOf(gathering, controller);
  const wide = clusterWide(gathering);
  const local = isMissing(home)
    ? noInstallation(gathering)
    : installation(gathering, { controller, agent, policies, namespace });
  const beyond = outsideFacts(gathering, { nodes, policies, controller });
  const [cluster, installed, outside] = await Promise.all([wide, local, beyond]);
  const tried = await trialFacts(gathering, {
    ...{ controller, agent, nodes, policies, at: installed.at, pods: installed.ownPods },
    workloads: found,
  });
  return {
    ...{
      version,
      inPod: isInPod(io),
      namespace,
      home,
      nodes,
      policies,
      controller,
      agent,
    },
    drainers: await drainers(gathering, { namespace, workloads }),
    ...tried,
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
  const facts = await Promise.all([
    fact(io, (signal) => definitionFacts(api, signal)),
    list(departuresPath, (all) => all.flatMap((one) => translateDeparture(one) ?? [])),
    list(budgetsPath, (all) => all.map(translateBudget)),
    fact(io, async () =>
      (await listAll(api, podsPath, { fieldSelector: "status.phase=Failed" })).map(
        translateFailedPod,
      ),
    ),
    list("/api/v1/persistentvolumes", localVolumeFacts),
    list("/apis/scheduling.k8s.io/v1/priorityclasses", namesOf),
    // With ten thousand workloads this reads the whole cluster.
    fact(io, (signal) => graceFacts(api, signal), minutes(2)),
  ]);
  const [definitions, departures, budgets, failedPods, localVolumes, priorityClasses, grace] =
    facts;
  return { definitions, departures, budgets, failedPods, localVolumes, priorityClasses, grace };
}

function namesOf(objects: readonly KubeObject[]): ReadonlySet<string> {
  return new Set(objects.map(({ metadata }) => metadata?.name ?? ""));
}

async function graceFacts(api: KubeApi, signal: AbortSignal) {
  const { objects } = await readCluster({ api, signal });
  const sources = objects.map((json) => ({ json, origin: "Recorded" }) as const);
  const { summary, findings } = audit({ sources, platforms: [], scope: "Possible" });
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
    readonly policies: Fact<PolicyFacts>;
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
    fact(io, (signal) => {
      const more = usesOf(found.policies).restarts ? restartRights : [];
      return rightsOfAccount(api, account, [...controllerRights, ...more], signal);
    }),
    fact(io, (signal) => {
      const needed = [...agentRights, ...fallbackRightsOf(found.agent)];
      return rightsOfAccount(api, accountOf(found.agent, "lastcall-agent"), needed, signal);
    }),
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

/** Without its namespace, everything of an installation is unknown, not missing. */
async function noInstallation(gathering: Gathering) {
  const none = noNamespace(gathering);
  return {
    at: await clusterTime(gathering.api, gathering.io),
    ...{ rights: none, agentRights: none, lease: none, otherLeaders: none },
    ...{ ownPods: none, accountAnnotations: none, quotaClasses: none },
  };
}

function fallbackRightsOf(agent: Fact<WorkloadFacts | undefined>) {
  const found = agent.kind === "Known" ? agent.value : undefined;
  const fallback = found === undefined ? undefined : optionOf(found, "fallback");
  return fallback?.kind === "Known" ? (fallbackRights[fallback.value ?? ""] ?? []) : [];
}

/** A namespace that the caller may not read is not missing. */
async function homeFacts(
  { api, io, namespace }: Gathering,
  workloads: ObjectList,
): Promise<Fact<HomeFacts>> {
  if (workloads.kind === "Unknown") return workloads;
  const controllerIn = ownWorkload(workloads.value, "controller", undefined)?.metadata?.namespace;
  if (namespace === undefined) return known({ exists: true, controllerIn });
  return fact(io, async (signal) => {
    const found = await objectAt(api, `${namespacesPath}/${namespace}`, signal);
    return { exists: found !== undefined, controllerIn };
  });
}

function isMissing(home: Fact<HomeFacts>): boolean {
  return home.kind === "Known" && !home.value.exists;
}

function noNamespace({ namespace }: Gathering): Fact<never> {
  return unknown(`the namespace ${namespace} does not exist`);
}

function drainers(
  { api, io }: Gathering,
  { namespace, workloads }: { readonly namespace: string; readonly workloads: ObjectList },
): Promise<DoctorFacts["drainers"]> {
  if (workloads.kind === "Unknown") return Promise.resolve(workloads);
  const own = { namespace, accounts: ownAccounts(workloads.value) };
  return fact(io, async () => {
    const names = ["clusterroles", "clusterrolebindings", "roles", "rolebindings"];
    const lists = names.map((name) => listAll(api, `${rbac}/${name}`));
    const [clusterRoles = [], clusterRoleBindings = [], roles = [], roleBindings = []] =
      await Promise.all(lists);
    return drainersIn({ clusterRoles, clusterRoleBindings, roles, roleBindings }, own);
  });
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
async function alertFacts(
  { policies, controller }: Pick<DoctorFacts, "policies" | "controller">,
  io: CommandIo,
): Promise<readonly AlertFacts[]> {
  const gates = (policies.kind === "Known" ? policies.value.policies : []).flatMap(
    ({ name, gates: { alerts } }) => (alerts === undefined ? [] : [{ policy: name, alerts }]),
  );
  const hosts = controller.kind === "Known" ? hostsOf(controller.value) : controller;
  return Promise.all(
    gates.map(async ({ policy, alerts }) => ({
      policy,
      firing:
        hosts.kind === "Unknown"
          ? unknown(hosts.why)
          : await fact(io, async (signal) => {
              const allowed = await actionHosts(hosts.value);
              return alertGate({ allowed, ...io })(alerts, signal);
            }),
    })),
  );
}

function hostsOf(controller: WorkloadFacts | undefined): Fact<string | undefined> {
  return controller === undefined ? known(undefined) : optionOf(controller, "action-hosts");
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
    ...{ clockAheadMs: none, home: none, definitions: none, rights: none, agentRights: none },
    ...{ lease: none, otherLeaders: none },
    ...{ controller: none, agent: none, ownPods: none, accountAnnotations: none, nodes: none },
    ...{ policies: none, departures: none, budgets: none, otherTools: none },
    ...{ agentTrials: none, controllerTrials: none, podTrials: none, drainers: none },
    ...{ quotaClasses: none, priorityClasses: none },
    ...{ machines: none, orphanMachines: none, queue: none, failedPods: none },
    ...{ localVolumes: none, grace: none },
  };
}
