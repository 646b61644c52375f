import { lookup } from "node:dns/promises";
import { awsActionKinds, createAwsRunner } from "../../cloud/aws/actions/aws-runners.ts";
import { parseManagedTag, TaggedMachines } from "../../cloud/aws/tagged-machines.ts";
import { parsePolicyObject } from "../../config/policy/parse-policy-object.ts";
import { sentenceOf } from "../../config/problem.ts";
import type { ActionRunner, ActionRunners, SecretReader } from "../../contracts/action-runner.ts";
import type { Clock } from "../../contracts/clock.ts";
import type { Log } from "../../contracts/telemetry.ts";
import type { Rng } from "../../core/chance/rng.ts";
import { excerpt, fieldsOf, oneOf, parseJson, textOf } from "../../core/json/json-field.ts";
import type { Action, ActionKind } from "../../core/policy/action.ts";
import { LastcallError } from "../../errors.ts";
import { actionHosts } from "../assemble/action-runners.ts";
import { type MachineLookUp, Responder, type ResponderFleet } from "./responder.ts";

export interface ResponderIo {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly clock: Clock;
  readonly rng: Rng;
  readonly log: Log;
}

/** Assembles the responder from its environment. Throws CONFIG_INVALID with the field. */
export function createResponder(io: ResponderIo): Responder {
  const { env, clock, rng, log } = io;
  const ec2 = ec2Client();
  return new Responder({
    actions: readActions(env.LASTCALL_ACTIONS),
    runners: runnersOf(io),
    lookUp: machineLookUp(ec2),
    fleet: fleetOf(io, ec2),
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
    ...{ clock, rng, region: env.AWS_REGION, machines: () => [] },
    onError: (error: LastcallError) => log.warn("index-trouble", { error: error.message }),
  };
  const make = async (kind: ActionKind): Promise<unknown> => {
    const known = oneOf(awsActionKinds, kind);
    if (known !== undefined) return createAwsRunner(known, tools);
    const [{ sinkRunner }, { HttpSender }] = await Promise.all([
      import("../../actions/sink-runners.ts"),
      import("../../actions/http-sender.ts"),
    ]);
    const allowed = await actionHosts(env.LASTCALL_ACTION_HOSTS);
    const resolve = (host: string) => lookup(host, { all: true });
    const sender = new HttpSender({ allowed, env, resolve });
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
  const together = fieldsOf(parseJson(env.LASTCALL_SECRETS ?? "")?.value);
  return {
    read: async ({ name, key }) => {
      const variable = `LASTCALL_SECRET_${name}_${key}`.toUpperCase().replaceAll(/[^A-Z0-9]/g, "_");
      const value = env[variable] || textOf(together[variable]);
      if (value) return value;
      throw new LastcallError(
        "SECRET_MISSING",
        `Cannot read the Secret ${name}: found no key ${key}, expected it in the environment as ${variable}, or by that name in the JSON of LASTCALL_SECRETS`,
      );
    },
  };
}

/** Created when first needed. */
function ec2Client(): () => Promise<ResponderEc2> {
  let client: Promise<ResponderEc2> | undefined;
  return () => {
    client ??= import("../../cloud/aws/ec2-client.ts").then(
      ({ Ec2Client }) => new Ec2Client({ region: undefined }),
    );
    return client;
  };
}

/** `LASTCALL_AWS_MANAGED_TAG`, like the controller's `--aws-managed-tag`. */
function fleetOf(
  { env, clock, rng, log }: ResponderIo,
  ec2: () => Promise<ResponderEc2>,
): ResponderFleet | undefined {
  const text = env.LASTCALL_AWS_MANAGED_TAG;
  if (!text) return undefined;
  const tag = parseManagedTag(text);
  const onError = ({ message }: LastcallError) => log.warn("tag-unknown", { error: message });
  let machines: TaggedMachines | undefined;
  return {
    mark: `the tag ${text}`,
    has: async (instanceId) => {
      machines ??= new TaggedMachines({ ec2: await ec2(), tag, clock, rng });
      return machines.has(instanceId, onError);
    },
  };
}

function machineLookUp(ec2: () => Promise<ResponderEc2>): MachineLookUp {
  return {
    nodeName: async (instanceId, signal) => {
      const [instance] = await (await ec2()).instances([instanceId], signal);
      return instance?.dnsName;
    },
    addresses: async (instanceId, signal) => {
      const interfaces = await (await ec2()).interfacesOf([instanceId], signal);
      return interfaces.flatMap(({ addresses }) => addresses);
    },
  };
}

type ResponderEc2 = InstanceType<typeof import("../../cloud/aws/ec2-client.ts")["Ec2Client"]>;
