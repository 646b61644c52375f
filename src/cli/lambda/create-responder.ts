import { awsActionKinds, createAwsRunner } from "../../cloud/aws/actions/aws-runners.ts";
import { type InRegion, oneEach, parseManagedTag } from "../../cloud/aws/ec2-machine.ts";
import { interfacesOfOne } from "../../cloud/aws/ec2-network.ts";
import { TaggedMachines } from "../../cloud/aws/instance-feed.ts";
import { unreadVariables } from "../../config/options/unread-variable.ts";
import { parsePolicyObject } from "../../config/policy/parse-policy-object.ts";
import { sentenceOf } from "../../config/problem.ts";
import type { ActionRunner, ActionRunners, SecretReader } from "../../contracts/action-runner.ts";
import type { Clock } from "../../contracts/clock.ts";
import type { Log } from "../../contracts/telemetry.ts";
import type { Rng } from "../../core/chance/chance.ts";
import {
  excerpt,
  fieldsOf,
  isFields,
  oneOf,
  parseJson,
  textOf,
} from "../../core/json/json-field.ts";
import type { Action, ActionKind } from "../../core/policy/action.ts";
import { type Millis, seconds } from "../../core/time/time.ts";
import { isLastcallError, LastcallError } from "../../errors.ts";
import { actionHosts, guardedSender } from "../assemble/controller-ports.ts";
import { type MachineLookUp, Responder, type ResponderFleet } from "./responder.ts";

export interface ResponderIo {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly clock: Clock;
  readonly rng: Rng;
  readonly log: Log;
}

const variables = {
  named: ["ACTIONS", "ACTION_HOSTS", "AWS_MANAGED_TAG", "EVENT_FIELDS", "SECRETS"].map(
    (name) => `LASTCALL_${name}`,
  ),
  beginning: "LASTCALL_SECRET_",
};

/** Assembles the responder from its environment. Throws CONFIG_INVALID with the field. */
export function createResponder(io: ResponderIo): Responder {
  const { env, clock, rng, log } = io;
  for (const problem of unreadVariables(env, variables)) log.warn("variable-unknown", { problem });
  const ec2In = ec2Clients(io);
  return new Responder({
    actions: readActions(env.LASTCALL_ACTIONS),
    runners: runnersOf(io),
    lookUp: machineLookUp(ec2In),
    fleet: fleetOf(io, ec2In),
    ...{ clock, rng, log },
  });
}

/** Validated by the schema of a policy's `spec.actions`. */
function readActions(text: string | undefined): readonly Action[] {
  const actions = parseJson(text ?? "")?.value;
  if (!Array.isArray(actions)) {
    throw new LastcallError(
      "CONFIG_INVALID",
      `Cannot use LASTCALL_ACTIONS: found ${text === undefined ? "nothing" : excerpt(text)}, expected the list of spec.actions as JSON`,
    );
  }
  const object = {
    ...{ apiVersion: "lastcall.dev/v1alpha1", kind: "DeparturePolicy" },
    ...{ metadata: { name: "lambda" }, spec: { actions } },
  };
  const parsed = parsePolicyObject(object, {
    unknownFields: "Refuse",
    // There are no windows in this environment.
    cronProblem: () => undefined,
  });
  if ("policy" in parsed) return parsed.policy.actions;
  const details = parsed.problems.map(sentenceOf);
  throw new LastcallError("CONFIG_INVALID", `Cannot use LASTCALL_ACTIONS: ${details[0]}`, {
    details,
  });
}

/** Each client is created once, for as long as Lambda keeps the process. */
function runnersOf({ env, clock, rng, log }: ResponderIo): ActionRunners {
  const made = new Map<ActionKind, Promise<ActionRunner<never> | undefined>>();
  const tools = {
    ...{ clock, rng, region: env.AWS_REGION, machines: () => [], nodesUnlabelled: true },
    onError: (error: LastcallError) => log.warn("index-trouble", { error: error.message }),
  };
  const make = async (kind: ActionKind): Promise<unknown> => {
    const known = oneOf(awsActionKinds, kind);
    if (known !== undefined) return createAwsRunner(known, tools);
    const { sinkRunner } = await import("../../actions/sink-runners.ts");
    const allowed = await actionHosts(env.LASTCALL_ACTION_HOSTS).catch((error: unknown) => {
      throw asVariable(error, "--action-hosts", "LASTCALL_ACTION_HOSTS");
    });
    const sender = await guardedSender({ allowed, env });
    return sinkRunner(kind, { sender, secrets: environmentSecrets(env), clock });
  };
  return <Kind extends ActionKind>(kind: Kind) => {
    const runner = made.get(kind) ?? (make(kind) as Promise<ActionRunner<never> | undefined>);
    made.set(kind, runner);
    return runner as Promise<ActionRunner<Kind> | undefined>;
  };
}

/**
 * There is no cluster: key `token` of Secret `slack` is `LASTCALL_SECRET_SLACK_TOKEN`, in the
 * environment or in the JSON of `LASTCALL_SECRETS`, which is for secret stores that cannot set
 * variables they do not know.
 */
function environmentSecrets(env: ResponderIo["env"]): SecretReader {
  const json = env.LASTCALL_SECRETS ?? "";
  const read = parseJson(json)?.value;
  const together = fieldsOf(read);
  const unread = json === "" || isFields(read) ? "" : ", which is not a JSON object";
  return {
    read: async ({ name, key }) => {
      const variable = `LASTCALL_SECRET_${name}_${key}`.toUpperCase().replaceAll(/[^A-Z0-9]/g, "_");
      const value = env[variable] || textOf(together[variable]);
      if (value) return value;
      throw new LastcallError(
        "SECRET_MISSING",
        `Cannot read the Secret ${name}: found no key ${key}, expected it in the environment as ${variable}, or by that name in the JSON of LASTCALL_SECRETS${unread}`,
      );
    },
  };
}

/** Names the variable where an error names the option with the same value. */
function asVariable(error: unknown, option: string, variable: string): unknown {
  if (!isLastcallError(error)) return error;
  return new LastcallError(error.code, error.message.replaceAll(option, variable));
}

/** One client per region, created when first needed; without a region, the function's own. */
function ec2Clients({ env }: ResponderIo): InRegion<Promise<ResponderEc2>> {
  const inNamed = oneEach(async (region) => {
    const { Ec2Client } = await import("../../cloud/aws/ec2-client.ts");
    return new Ec2Client({ region });
  });
  return (region) => inNamed(region ?? env.AWS_REGION);
}

/** A cold start includes the first connection to EC2, and nothing is done without its answer. */
const answerWithinMs: Millis = seconds(10);

/** `LASTCALL_AWS_MANAGED_TAG`, like the controller's `--aws-managed-tag`. */
function fleetOf(
  { env, clock, rng }: ResponderIo,
  ec2In: InRegion<Promise<ResponderEc2>>,
): ResponderFleet | undefined {
  const text = env.LASTCALL_AWS_MANAGED_TAG;
  if (!text) return undefined;
  const tag = tagOf(text);
  const taggedIn = oneEach(
    async (region) =>
      new TaggedMachines({ ec2: await ec2In(region), tag, clock, rng, answerWithinMs }),
  );
  return {
    mark: `the tag ${text}`,
    has: async ({ instanceId, region }) => (await taggedIn(region)).has(instanceId),
  };
}

function tagOf(text: string): ReturnType<typeof parseManagedTag> {
  try {
    return parseManagedTag(text);
  } catch (error) {
    throw asVariable(error, "--aws-managed-tag", "LASTCALL_AWS_MANAGED_TAG");
  }
}

function machineLookUp(ec2In: InRegion<Promise<ResponderEc2>>): MachineLookUp {
  return {
    nodeName: async ({ instanceId, region }, signal) => {
      const instance = await (await ec2In(region)).instance(instanceId, signal);
      return instance?.dnsName;
    },
    addresses: async ({ instanceId, region }, signal) => {
      const interfaces = await interfacesOfOne(await ec2In(region), instanceId, signal);
      return interfaces.flatMap(({ addresses }) => addresses);
    },
  };
}

type ResponderEc2 = InstanceType<typeof import("../../cloud/aws/ec2-client.ts")["Ec2Client"]>;
