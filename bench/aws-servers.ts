/**
 * The AWS services that actions call, in a separate process at low priority: their work does not
 * count as the controller's and does not delay it, because AWS has its own processors.
 * `startAwsServers` is called by the bench.
 */
import { fork } from "node:child_process";
import { once } from "node:events";
import { constants, setPriority } from "node:os";
import { fileURLToPath } from "node:url";
import { AutoScalingServer } from "../test/support/auto-scaling-server.ts";
import { LambdaServer } from "../test/support/lambda-server.ts";
import { LoadBalancerServer, type ServedCall } from "../test/support/load-balancer-server.ts";
import { NetworkServer } from "../test/support/network-server.ts";
import { SnsServer } from "../test/support/sns-server.ts";

export const topicArn = "arn:aws:sns:eu-west-1:123456789012:spot";
export const functionName = "responder";
export const quarantine = "sg-0abc";

export interface ServedFleet {
  readonly groups: number;
  readonly targetsPerGroup: number;
  readonly groupsPerMachine: number;
}

/** A call to Elastic Load Balancing; `atMs` is Unix time with fractions. */
export type AwsCall = ServedCall;

export interface AwsServers {
  /** The variables by which the AWS SDK finds the servers. */
  readonly env: Readonly<Record<string, string>>;
  /** All calls to Elastic Load Balancing since the previous call of this function. */
  calls(): Promise<readonly AwsCall[]>;
  stop(): Promise<void>;
}

export function idOf(place: number): string {
  return `i-${place.toString(16).padStart(17, "0")}`;
}

/** The number of machines if each is in `groupsPerMachine` groups. */
export function machinesOf({ groups, targetsPerGroup, groupsPerMachine }: ServedFleet): number {
  return (groups * targetsPerGroup) / groupsPerMachine;
}

export function nowMs(): number {
  return performance.timeOrigin + performance.now();
}

export async function startAwsServers(fleet: ServedFleet): Promise<AwsServers> {
  const child = fork(fileURLToPath(import.meta.url), [JSON.stringify(fleet)]);
  const [env] = await once(child, "message");
  setPriority(child.pid ?? 0, constants.priority.PRIORITY_BELOW_NORMAL);
  return {
    env,
    calls: async () => {
      child.send("calls");
      const [calls] = await once(child, "message");
      return calls;
    },
    stop: async () => {
      child.disconnect();
      await once(child, "exit");
    },
  };
}

async function serve(fleet: ServedFleet): Promise<void> {
  const { groups, targetsPerGroup } = fleet;
  const balancers = await new LoadBalancerServer(nowMs).start();
  const [network, scaling] = [
    await new NetworkServer().start(),
    await new AutoScalingServer().start(),
  ];
  const [sns, lambda] = [await new SnsServer().start(), await new LambdaServer().start()];
  const machines = machinesOf(fleet);
  for (let group = 0; group < groups; group += 1) {
    const targets = Array.from({ length: targetsPerGroup }, (_, place) => ({
      ...{ id: idOf((group * targetsPerGroup + place) % machines), port: 80 },
    }));
    balancers.addGroup(`group-${group}`, { targets });
  }
  for (let place = 0; place < machines; place += 1) {
    network.addInterface(network.addInstance(place));
    scaling.members.set(idOf(place), "spot");
  }
  for (const id of [quarantine, "sg-nodes"]) network.securityGroups.set(id, "vpc-a");
  sns.topics.add(topicArn);
  lambda.functions.add(functionName);
  process.on("message", () => {
    process.send?.(balancers.calls.splice(0));
  });
  process.on("disconnect", () => process.exit(0));
  process.send?.({
    ...{ AWS_ACCESS_KEY_ID: "bench", AWS_SECRET_ACCESS_KEY: "bench", AWS_REGION: "eu-west-1" },
    AWS_ENDPOINT_URL_ELASTIC_LOAD_BALANCING_V2: balancers.url,
    AWS_ENDPOINT_URL_ELASTIC_LOAD_BALANCING: balancers.url,
    AWS_ENDPOINT_URL_EC2: network.url,
    AWS_ENDPOINT_URL_AUTO_SCALING: scaling.url,
    AWS_ENDPOINT_URL_SNS: sns.url,
    AWS_ENDPOINT_URL_LAMBDA: lambda.url,
  });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await serve(JSON.parse(process.argv[2] ?? "{}"));
}
