import type { ActionProblem, ActionRunner } from "../../../contracts/action-runner.ts";
import type { Clock } from "../../../contracts/clock.ts";
import type { Rng } from "../../../core/chance/chance.ts";
import type { ActionKind } from "../../../core/policy/action.ts";
import type { LastcallError } from "../../../errors.ts";
import { findInstanceRef, type InRegion, type InstanceRef, oneEach } from "../ec2-machine.ts";
import type { Ec2Network } from "../ec2-network.ts";
import type { RegionTraffic } from "./deregister-targets.ts";
import type { DetachingGroups } from "./detach-instance.ts";
import { machineBatches } from "./traffic-groups.ts";

export interface AwsActionOptions {
  readonly clock: Clock;
  readonly rng: Rng;
  /** The default region, as the AWS clients take it from the environment. */
  readonly region: string | undefined;
  /**
   * The providerIDs of the machines that may depart, which are looked up in advance.
   */
  readonly machines: () => readonly string[];
  /**
   * Nobody sets the label on which aws-load-balancer-controller deregisters a node from its groups,
   * so they are left like all others. Default: it is set.
   */
  readonly nodesUnlabelled?: boolean;
  /** Refreshes the load balancers until it aborts. Default: they are read only when needed. */
  readonly follow?: AbortSignal | undefined;
  readonly onError: (error: LastcallError) => void;
}

/** The kinds of actions that AWS performs. */
export const awsActionKinds = [
  "deregisterTargets",
  "replaceSecurityGroups",
  "detach",
  "sns",
  "lambda",
] as const satisfies readonly ActionKind[];

type AwsKind = (typeof awsActionKinds)[number];

const loaders: {
  readonly [Kind in AwsKind]: (options: AwsActionOptions) => Promise<ActionRunner<Kind>>;
} = {
  deregisterTargets: createTargetRunner,
  replaceSecurityGroups: async (options) => {
    const [{ SecurityGroupRunner }, { Ec2Client }] = await Promise.all([
      import("./security-groups.ts"),
      import("../ec2-client.ts"),
    ]);
    const networkIn = inFleet(options, (region) =>
      lookingTogether(new Ec2Client({ region }), options),
    );
    const known = () => instancesOf(options);
    return new SecurityGroupRunner({ networkIn, known, clock: options.clock });
  },
  detach: async (options) => {
    const [{ DetachRunner }, { AutoScaling }] = await Promise.all([
      import("./detach-instance.ts"),
      import("../auto-scaling.ts"),
    ]);
    const groupsIn = inFleet(options, (region): DetachingGroups => {
      const groups = new AutoScaling({ region });
      const membersOf = machineBatches((ids, until) => groups.members(ids, until), options.clock);
      return {
        membership: async (id, signal) => (await membersOf(id, signal))[0],
        detach: (id, how, signal) => groups.detach(id, how, signal),
      };
    });
    return new DetachRunner(groupsIn, () => instancesOf(options));
  },
  sns: async () => {
    const { SnsRunner } = await import("./sns-client.ts");
    return new SnsRunner();
  },
  lambda: async () => {
    const { LambdaRunner } = await import("./lambda-client.ts");
    return new LambdaRunner();
  },
};

/** Batches the lookups of single machines in a burst of notices. */
function lookingTogether(network: Ec2Network, { clock }: AwsActionOptions): Ec2Network {
  const look = machineBatches((ids, until) => network.interfacesOf(ids, until), clock);
  return {
    interfacesOf: (ids, signal) => {
      const [first, ...others] = ids;
      const isOne = first !== undefined && others.length === 0;
      return isOne ? look(first, signal) : network.interfacesOf(ids, signal);
    },
    instance: (id, signal) => network.instance(id, signal),
    vpcsOf: (ids, signal) => network.vpcsOf(ids, signal),
    setSecurityGroups: (id, groups, signal) => network.setSecurityGroups(id, groups, signal),
    trySecurityGroups: (id, groups, signal) => network.trySecurityGroups(id, groups, signal),
  };
}

/** The kinds that act on the instance, which must be EC2's. Messages may be about any machine. */
const kindsOfInstances: ReadonlySet<AwsKind> = new Set([
  "deregisterTargets",
  "replaceSecurityGroups",
  "detach",
]);

/** Creates the runner of one kind and loads only the AWS clients that it needs. */
export async function createAwsRunner<Kind extends AwsKind>(
  kind: Kind,
  options: AwsActionOptions,
): Promise<ActionRunner<Kind>> {
  const runner = await loaders[kind](options);
  if (!kindsOfInstances.has(kind)) return runner;
  return {
    check: async (how, signal) => fleetProblem(kind, options) ?? runner.check(how, signal),
    prepare: (task, signal) => runner.prepare(task, signal),
    apply: (task, signal) => runner.apply(task, signal),
    undo: (task, signal) => runner.undo(task, signal),
  };
}

/** The problem if no machine is an EC2 instance, since the action would always fail. */
function fleetProblem(field: string, options: AwsActionOptions): ActionProblem | undefined {
  const [first] = options.machines();
  if (first === undefined || instancesOf(options).length > 0) return undefined;
  const found = `no EC2 instance among the nodes (such as ${first})`;
  const wanted = "a providerID such as aws:///eu-west-1a/i-0123456789abcdef0";
  return { code: "ACTION_REFUSED", field, found, wanted };
}

async function createTargetRunner(
  options: AwsActionOptions,
): Promise<ActionRunner<"deregisterTargets">> {
  const [{ TargetRunner }, { TargetIndex, refreshMs }, targetGroups, classic, { Ec2Client }] =
    await Promise.all([
      import("./deregister-targets.ts"),
      import("./target-index.ts"),
      import("./target-group-client.ts"),
      import("./classic-load-balancer-client.ts"),
      import("../ec2-client.ts"),
    ]);
  const { clock, rng, follow, nodesUnlabelled, onError } = options;
  const make = (region: string | undefined): RegionTraffic => {
    const kinds = [
      new targetGroups.TargetGroupClient({ region, readsOwners: !nodesUnlabelled }),
      new classic.ClassicLoadBalancerClient({ region }),
    ];
    const network = new Ec2Client({ region });
    const machines = () => instancesIn(region, options);
    const believedMs = follow === undefined ? refreshMs : undefined;
    const index = new TargetIndex({ kinds, network, machines, believedMs, clock, rng });
    if (follow !== undefined) void index.follow(onError, follow);
    return { index, kinds, instances: network };
  };
  return new TargetRunner({ trafficIn: inFleet(options, make), clock, rng });
}

/**
 * One client per region. Without a region, as for a check, that of the environment or the fleet.
 */
function inFleet<Client>(options: AwsActionOptions, make: InRegion<Client>): InRegion<Client> {
  const inNamed = oneEach(make);
  return (region) => inNamed(region ?? options.region ?? regionOfFleet(options));
}

function regionOfFleet({ machines }: AwsActionOptions): string | undefined {
  for (const providerID of machines()) {
    const region = findInstanceRef(providerID)?.region;
    if (region !== undefined) return region;
  }
  return undefined;
}

function instancesOf({ machines }: AwsActionOptions): readonly InstanceRef[] {
  return machines().flatMap((providerID) => findInstanceRef(providerID) ?? []);
}

/** The fleet's instances in a region. */
function instancesIn(region: string | undefined, options: AwsActionOptions): readonly string[] {
  return options.machines().flatMap((providerID) => {
    const found = findInstanceRef(providerID);
    return found !== undefined && (found.region ?? options.region) === region
      ? found.instanceId
      : [];
  });
}
