import { millis, minutes } from "../../src/core/time/time.ts";
import { type ArmMachine, scaleSet } from "../support/arm-server.ts";
import type { Ec2Fleet, FleetGroup, FleetInstance } from "../support/ec2-fleet.ts";
import { createNodes, nodeObject } from "../support/kwok-fleet.ts";
import type { RelayVerdict } from "../support/relay.ts";
import { generationLabel } from "./cloud.ts";
import {
  ago,
  type Body,
  type Change,
  changed,
  created,
  type Fault,
  type Stage,
  specified,
} from "./doctor-stage.ts";

const nodes = "/api/v1/nodes";
const inPod = { KUBERNETES_SERVICE_HOST: "in-a-pod" };

/** Faults in responses of Compute Engine and SQS, while a controller leads. */
export const computeFaults: readonly Fault[] = [
  {
    ...{ check: "cloud-identity", status: "Fail", what: "a token that Compute Engine rejects" },
    says: "401",
    also: ["release"],
    asked: () => ({
      env: inPod,
      gce: async () => ({ status: 401, body: { error: { code: 401, message: "401" } } }),
    }),
  },
  {
    ...{
      check: "cloud-permissions",
      status: "Fail",
      what: "a Google Cloud role without a permission",
    },
    says: "instanceGroupManagers.update",
    also: ["release"],
    make: async ({ world }) => world.cloud.deny("compute.instanceGroupManagers.update"),
    mend: async ({ world }) => world.cloud.allow("compute.instanceGroupManagers.update"),
  },
  {
    ...{ check: "machines", status: "Fail", what: "a Ready node whose instance does not exist" },
    says: "the cloud has no machine for a-ghost",
    ...created(nodes, node("a-ghost")),
  },
  {
    ...{ check: "nodes-without-machine", status: "Warn", what: "a Node whose machine is gone" },
    says: "a-left no longer has a machine",
    ...created(nodes, withoutKubelet(node("a-left"))),
  },
  {
    ...{ check: "machines-without-node", status: "Warn" },
    what: "an instance of a managed group that never became a node",
    says: "1 machine without a Node: lost-1",
    make: async ({ world: { cloud } }) => {
      cloud.addStray("lost-1", "europe-west1-b");
      cloud.startAt("lost-1", ago(minutes(16)));
    },
    mend: async ({ world }) => world.cloud.startAt("lost-1", ago(millis(0))),
  },
  {
    ...{ check: "machines-without-node", status: "Warn" },
    what: "an instance with the cluster's label, in no group, that never became a node",
    says: "1 machine without a Node: lost-2",
    make: async ({ world: { cloud } }) => {
      cloud.addStray("lost-2", "europe-west1-d", "Alone");
      cloud.startAt("lost-2", ago(minutes(16)));
    },
    mend: async ({ world }) => world.cloud.startAt("lost-2", ago(millis(0))),
  },
  {
    ...{ check: "launch-times", status: "Warn", what: "instances without a launch time" },
    says: "the age of the Node object is used",
    asked: ({ world }) => ({ gce: withoutTimes(world.cloud.endpoint) }),
  },
  {
    ...{
      check: "release",
      status: "Fail",
      what: "a release mode that the owner of the machine does not allow",
    },
    says: "the machine belongs to Karpenter",
    also: ["forecast"],
    ...together(releasing("Delete"), changed(`${nodes}/spot-1`, ofPool("spot"), ofPool(null))),
  },
  {
    ...{ check: "queue", status: "Fail", what: "a queue that does not exist" },
    says: "does not exist",
    asked: ({ moto }) => ({ flags: ["--sqs-queue-url", `${moto.url}/123456789012/none-such`] }),
  },
  {
    ...{ check: "queue", status: "Warn", what: "a queue with 100 messages that nobody receives" },
    says: "the queue is not keeping up: 100 messages waiting",
    make: ({ moto }) => moto.send(...Array.from({ length: 100 }, (_, place) => ({ place }))),
    mend: ({ moto }) => moto.read(100, 1),
    asked: ({ moto }) => ({ flags: ["--sqs-queue-url", moto.queueUrl] }),
  },
];

const ofCluster = { "kubernetes.io/cluster/main": "owned" };

/** Adds nodes on three EC2 instances of an Auto Scaling group. */
export async function joinEc2({ world, fleet }: Stage): Promise<void> {
  const group = fleet.addGroup("spot");
  const ids = [1, 2, 3].map(() => addInstance(fleet, group).id);
  await join(
    world,
    "aws",
    ids.map((id) => `aws:///eu-west-1a/${id}`),
  );
}

export const ec2Faults: readonly Fault[] = [
  {
    ...{ check: "cloud-identity", status: "Fail", what: "access keys that EC2 rejects" },
    says: "AuthFailure",
    also: ["release"],
    asked: () => ({ env: inPod }),
    ...faulty("Unauthenticated"),
  },
  {
    ...{ check: "cloud-identity", status: "Warn", what: "no response from EC2" },
    says: "The server is overloaded",
    also: ["release"],
    ...faulty("Unreachable"),
  },
  {
    ...{
      check: "cloud-permissions",
      status: "Fail",
      what: "an AWS role that cannot read Auto Scaling groups",
    },
    says: "autoscaling:DescribeAutoScalingInstances",
    also: ["release"],
    make: async ({ fleet }) => fleet.denied.add("DescribeAutoScalingInstances"),
    mend: async ({ fleet }) => fleet.denied.delete("DescribeAutoScalingInstances"),
  },
  {
    ...{ check: "cloud-permissions", status: "Fail", what: "an EC2 dry run that is denied" },
    says: "ec2:TerminateInstances",
    also: ["release"],
    ...together(releasing("DeleteInstance"), ungrouped(), {
      make: async ({ fleet }) => fleet.denied.add("TerminateInstances"),
      mend: async ({ fleet }) => fleet.denied.delete("TerminateInstances"),
    }),
  },
  {
    ...{ check: "machines-without-node", status: "Warn" },
    what: "an instance of an Auto Scaling group that never became a node",
    says: "1 machine without a Node: i-",
    also: ["clock"],
    asked: () => ({ later: minutes(16) }),
    make: async ({ fleet }) => fleet.addInstance(fleet.instances[0]?.group),
    mend: async ({ fleet }) => fleet.instances.pop(),
  },
  {
    ...{ check: "machines-without-node", status: "Warn" },
    what: "an instance with the cluster's tag, in no group, that never became a node",
    says: "1 machine without a Node: i-",
    also: ["clock"],
    asked: () => ({ later: minutes(16) }),
    make: async ({ fleet }) => addInstance(fleet),
    mend: async ({ fleet }) => fleet.instances.pop(),
  },
  {
    ...{ check: "machines", status: "Fail", what: "a Ready node whose instance EC2 terminated" },
    says: "the cloud has no machine for aws-1",
    make: async ({ fleet }) => Object.assign(fleet.instances[0] ?? {}, { state: "terminated" }),
    mend: async ({ fleet }) => Object.assign(fleet.instances[0] ?? {}, { state: "running" }),
  },
];

/** Adds nodes on three virtual machines of an AKS node pool. */
export async function joinAks({ world, arm }: Stage): Promise<void> {
  const machines = [1, 2, 3].map(() => arm.addMachine());
  const ids = machines.map((one) => `azure://${scaleSet}/virtualMachines/${one.instance}`);
  await join(world, "aks", ids);
}

export const azureFaults: readonly Fault[] = [
  {
    ...{
      check: "cloud-permissions",
      status: "Fail",
      what: "an Azure role that cannot delete machines",
    },
    says: "deleteMachines/action is not granted",
    also: ["release"],
    make: async ({ arm }) => Object.assign(arm, { granted: [] }),
    mend: async ({ arm }) => Object.assign(arm, { granted: ["*"] }),
  },
  {
    ...{
      check: "cloud-permissions",
      status: "Fail",
      what: "an Azure role that cannot read machines",
    },
    says: "Microsoft.Compute/virtualMachineScaleSets/virtualMachines/read",
    also: ["release"],
    make: async ({ arm }) => Object.assign(arm, { denied: /virtualmachines\/\d/ }),
    mend: async ({ arm }) => Object.assign(arm, { denied: undefined }),
  },
  {
    ...{ check: "machines-without-node", status: "Warn" },
    what: "a machine of a scale set that never became a node",
    says: "1 machine without a Node: 3",
    also: ["clock"],
    asked: () => ({ later: minutes(16) }),
    make: async ({ arm }) => arm.addMachine(),
    mend: async ({ arm }) => arm.machines.pop(),
  },
  {
    ...{ check: "machines-without-node", status: "Warn" },
    what: "a Karpenter virtual machine that never became a node",
    says: "1 machine without a Node: aks-default-x1",
    make: async ({ arm }) =>
      arm.singles.push({
        ...{ name: "aks-default-x1", tags: { "karpenter.sh_nodepool": "default" } },
        createdAt: ago(minutes(16)),
      }),
    mend: async ({ arm }) => arm.singles.pop(),
  },
  {
    ...{ check: "machines", status: "Fail", what: "a Ready node whose machine Azure deleted" },
    says: "the cloud has no machine for aks-1",
    also: ["release"],
    ...firstDeleted(),
  },
];

function ofPool(name: string | null): object {
  return { metadata: { labels: { "karpenter.sh/nodepool": name } } };
}

function releasing(release: string) {
  return specified({ instance: { release } }, { instance: null });
}

function faulty(fault: "Unauthenticated" | "Unreachable") {
  return {
    make: async ({ fleet }: Stage) => Object.assign(fleet, { fault }),
    mend: async ({ fleet }: Stage) => Object.assign(fleet, { fault: undefined }),
  };
}

function addInstance(fleet: Ec2Fleet, group?: FleetGroup): FleetInstance {
  return Object.assign(fleet.addInstance(group), { tags: ofCluster });
}

/** Moves the instances out of their Auto Scaling group, and back. */
function ungrouped(): Change {
  let group: FleetGroup | undefined;
  return {
    make: async ({ fleet: { instances } }) => {
      group = instances[0]?.group;
      for (const one of instances) one.group = undefined;
    },
    mend: async ({ fleet: { instances } }) => {
      for (const one of instances) one.group = group;
    },
  };
}

/** Deletes the first virtual machine, and restores it. */
function firstDeleted(): Change {
  let gone: readonly ArmMachine[] = [];
  return {
    make: async ({ arm }) => {
      gone = arm.machines.splice(0, 1);
    },
    mend: async ({ arm }) => arm.machines.unshift(...gone),
  };
}

/** Makes and mends several changes in this order. */
function together(...changes: readonly Change[]): Change {
  const each = (how: "make" | "mend") => async (stage: Stage) => {
    for (const change of changes) await change[how](stage);
  };
  return { make: each("make"), mend: each("mend") };
}

/** Creates nodes of the first generation, whose names make doctor check them first. */
async function join(
  { plane }: Stage["world"],
  prefix: string,
  ids: readonly string[],
): Promise<void> {
  const wanted = ids.map((providerID, place) => ({
    ...{ name: `${prefix}-${place + 1}`, providerID, provisioning: "spot" as const },
    labels: { [generationLabel]: "1" },
  }));
  await createNodes(plane, wanted);
}

function node(name: string): Body {
  return { ...nodeObject({ name }) };
}

/** Removes the label of a simulated kubelet, so the node never becomes ready. */
function withoutKubelet(made: Body): Body {
  const { metadata } = made as { metadata: { labels: Record<string, string> } };
  const labels = Object.entries(metadata.labels).filter(([key]) => !/kubelet/.test(key));
  return { ...made, metadata: { ...metadata, labels: Object.fromEntries(labels) } };
}

/** Compute Engine's responses without the creation and start times of instances. */
function withoutTimes(endpoint: string) {
  return async (path: string): Promise<RelayVerdict> => {
    if (!/\/instances\/[^/?]+(\?|$)/.test(path)) return "Pass";
    const answer = await fetch(`${endpoint}${path}`);
    const { creationTimestamp: _, lastStartTimestamp: __, ...body } = (await answer.json()) as Body;
    return { status: answer.status, body };
  };
}
