import { readClusterPolicy } from "../../config/policy/parse-policy-object.ts";
import { crdOf } from "../../config/schema/crd.ts";
import { resourceDefinitions } from "../../config/schema/resource-definition.ts";
import type { KubeApi, KubeObject } from "../../contracts/kube-api.ts";
import { withinTime } from "../../contracts/time-limit.ts";
import { isOnOneMachine } from "../../core/cluster/local-volume.ts";
import {
  type Fields,
  fieldsOf,
  instantOf,
  listOf,
  numberOf,
  oneOf,
  textOf,
  valueAt,
} from "../../core/json/json-field.ts";
import { cronProblem } from "../../core/limits/windows.ts";
import { between, type Instant, type Millis, millis, plus, seconds } from "../../core/time/time.ts";
import {
  type DefinitionFacts,
  type Fact,
  known,
  type LeaseFacts,
  type LocalVolumeFacts,
  type PolicyFacts,
  type PolicyState,
  type RightFacts,
  unknown,
} from "../../doctor/facts.ts";
import { type Right, rightName } from "../../doctor/rights.ts";
import { isLastcallError, LastcallError, messageOf } from "../../errors.ts";
import { callerName } from "../../kube/caller-name.ts";
import { apiError } from "../../kube/object/api-call.ts";
import { volumeSiteOf } from "../../kube/object/translate-pod.ts";
import type { CommandIo } from "../command-line/command.ts";

interface ServerFacts {
  readonly major: number;
  readonly minor: number;
  readonly name: string;
  /**
   * How far the server's clock is ahead of the local clock; undefined if it does not send its time.
   */
  readonly aheadMs: Millis | undefined;
}

/**
 * Asks the API server for its version. Throws if it does not respond or does not accept the
 * credentials.
 */
export async function serverFacts(
  api: KubeApi,
  clock: CommandIo["clock"],
  signal: AbortSignal,
): Promise<ServerFacts> {
  const request = { method: "GET", path: "/version", signal } as const;
  const askedAt = clock.now();
  const answer = await api.send(request);
  const answeredAt = clock.now();
  if (answer.status !== 200) throw apiError(request, answer);
  const { major, minor, gitVersion } = fieldsOf(answer.body);
  return {
    major: Number.parseInt(textOf(major) ?? "", 10),
    minor: Number.parseInt(textOf(minor) ?? "", 10),
    name: textOf(gitVersion) ?? "of an unknown version",
    aheadMs: answer.serverAt && aheadOf(answer.serverAt, askedAt, answeredAt),
  };
}

/**
 * The header has whole seconds, and the answer took time: zero if these two explain the difference.
 */
function aheadOf(serverAt: Instant, askedAt: Instant, answeredAt: Instant): Millis {
  const latestAt = plus(serverAt, seconds(1));
  if (latestAt < askedAt) return between(askedAt, latestAt);
  return serverAt > answeredAt ? between(answeredAt, serverAt) : millis(0);
}

/** Lastcall's own resources that are installed. */
export async function definitionFacts(
  api: KubeApi,
  signal: AbortSignal,
): Promise<readonly DefinitionFacts[]> {
  const found: DefinitionFacts[] = [];
  for (const resource of resourceDefinitions) {
    const ours = crdOf(resource) as KubeObject;
    const name = ours.metadata?.name ?? "";
    const path = `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${name}`;
    const theirs = await objectAt(api, path, signal);
    if (theirs === undefined) continue;
    const versions = listOf(valueAt(theirs.spec, ["versions"])).map(fieldsOf);
    const conditions = listOf(valueAt(theirs.status, ["conditions"])).map(fieldsOf);
    found.push({
      name,
      established: conditions.some(
        ({ type, status }) => type === "Established" && status === "True",
      ),
      served: versions.flatMap(({ name: version, served }) =>
        served === true ? (textOf(version) ?? []) : [],
      ),
      sameSchema: schemaText(theirs) === schemaText(ours),
    });
  }
  return found;
}

function schemaText(definition: KubeObject): string {
  const versions = listOf(valueAt(definition.spec, ["versions"]));
  return JSON.stringify(sorted(valueAt(versions[0], ["schema"])));
}

/** The same value with sorted fields: a server returns them in its own order. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).map(([key, entry]) => [key, sorted(entry)] as const);
  return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)));
}

export async function leaseFacts(
  api: KubeApi,
  namespace: string,
  signal: AbortSignal,
): Promise<LeaseFacts | undefined> {
  const path = `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases/lastcall`;
  const lease = await objectAt(api, path, signal);
  if (lease === undefined) return undefined;
  const { holderIdentity, renewTime, leaseDurationSeconds } = fieldsOf(lease.spec);
  return {
    holder: textOf(holderIdentity) || undefined,
    renewedAt: instantOf(renewTime),
    durationMs: seconds(numberOf(leaseDurationSeconds) ?? 40),
  };
}

export function policyFacts(objects: readonly KubeObject[]): PolicyFacts {
  const readings = objects.map((object) => readClusterPolicy(object, { cronProblem }));
  return {
    policies: readings.flatMap((one) => ("policy" in one ? one.policy : [])),
    bad: readings.flatMap((one) => ("problem" in one ? one : [])),
    states: new Map(objects.map((one) => [one.metadata?.name ?? "", policyState(one)])),
  };
}

function policyState({ status }: KubeObject): PolicyState {
  const conditions = listOf(valueAt(status, ["conditions"])).map(fieldsOf);
  const of = (name: string) => conditions.find(({ type }) => type === name) ?? {};
  const told = ({ message, reason }: Fields) => textOf(message) ?? textOf(reason) ?? "";
  const [feasible, ready] = [of("Feasible"), of("Ready")];
  const isReady = oneOf(["False", "Unknown"] as const, ready.status);
  return {
    observedGeneration: numberOf(fieldsOf(status).observedGeneration),
    infeasible: feasible.status === "False" ? told(feasible) : undefined,
    notReady: isReady && { status: isReady, message: told(ready) },
  };
}

/** The priority classes that a namespace's quotas cover. */
export function quotaClasses(quotas: readonly KubeObject[]): ReadonlySet<string> {
  const expressions = quotas.flatMap(({ spec }) => [
    ...listOf(valueAt(spec, ["scopeSelector", "matchExpressions"])),
  ]);
  const classes = expressions
    .map(fieldsOf)
    .filter(({ scopeName }) => scopeName === "PriorityClass")
    .flatMap(({ values }) => listOf(values));
  return new Set(classes.flatMap((one) => textOf(one) ?? []));
}

export function missingDate(): never {
  throw new LastcallError("API_ANSWER_INVALID", "the API server does not report its time");
}

export interface Account {
  readonly namespace: string;
  readonly name: string;
}

export function accountUser({ namespace, name }: Account): string {
  return `system:serviceaccount:${namespace}:${name}`;
}

/** The groups of every token of the account. */
export function accountGroups({ namespace }: Account): readonly string[] {
  return ["system:serviceaccounts", `system:serviceaccounts:${namespace}`, "system:authenticated"];
}

const reviews = "/apis/authorization.k8s.io/v1";

/**
 * Whether a ServiceAccount has each of the permissions, by SubjectAccessReview; if the caller may
 * not create one and is this ServiceAccount, by SelfSubjectAccessReview. A review is a POST that
 * stores nothing. Throws RIGHT_MISSING if neither is allowed.
 */
export async function rightsOfAccount(
  api: KubeApi,
  account: Account,
  rights: readonly Right[],
  signal: AbortSignal,
): Promise<readonly RightFacts[]> {
  const user = accountUser(account);
  const groups = accountGroups(account);
  const [first, ...others] = rights;
  if (first === undefined) return [];
  const review = (one: Right, subject: object) =>
    askReview(api, { right: one, account, subject }, signal);
  const tried = await review(first, { user, groups });
  const isRefused = tried === "Refused";
  if (isRefused && (await callerName(api, signal)) !== user) {
    throw new LastcallError(
      "RIGHT_MISSING",
      `Cannot check the permissions of ${account.namespace}/${account.name}: it is forbidden, grant create on subjectaccessreviews.authorization.k8s.io or run this command in its pod`,
    );
  }
  const subject = isRefused ? {} : { user, groups };
  const answers = await Promise.all(
    (isRefused ? rights : others).map(async (one) => ({
      name: rightName(one),
      allowed: (await review(one, subject)) === true,
    })),
  );
  return isRefused ? answers : [{ name: rightName(first), allowed: tried }, ...answers];
}

export async function askReview(
  api: KubeApi,
  asked: { readonly right: Right; readonly account: Account; readonly subject: object },
  signal: AbortSignal,
): Promise<boolean | "Refused"> {
  const { own, ...right } = asked.right;
  const resourceAttributes = { ...right, ...(own ? { namespace: asked.account.namespace } : {}) };
  const kind = "user" in asked.subject ? "SubjectAccessReview" : "SelfSubjectAccessReview";
  const path = `${reviews}/${kind.toLowerCase()}s`;
  const body = {
    apiVersion: "authorization.k8s.io/v1",
    kind,
    spec: { ...asked.subject, resourceAttributes },
  };
  const answer = await api.send({ method: "POST", path, body, signal });
  if (answer.status === 403) return "Refused";
  if (answer.status !== 201) throw apiError({ method: "POST", path }, answer);
  return fieldsOf(valueAt(answer.body, ["status"])).allowed === true;
}

/** The volumes on one machine that a claim uses. */
export function localVolumeFacts(volumes: readonly KubeObject[]): readonly LocalVolumeFacts[] {
  return volumes.flatMap(({ spec }) => {
    const site = volumeSiteOf(spec);
    const { namespace, name } = fieldsOf(valueAt(spec, ["claimRef"]));
    if (!isOnOneMachine(site) || site.nodes === undefined || name === undefined) return [];
    return [{ claim: `${textOf(namespace)}/${textOf(name)}`, nodes: site.nodes }];
  });
}

const answerWithin: Millis = seconds(20);

/**
 * Runs one query: any error is itself a fact and hides no other. An interrupt or the time limit
 * ends it at once, even if the query ignores signals.
 */
export async function fact<Value>(
  { clock, signal }: Pick<CommandIo, "clock" | "signal">,
  ask: (signal: AbortSignal) => Promise<Value>,
  withinMs = answerWithin,
): Promise<Fact<Value>> {
  const found = `no response within ${withinMs / 1000} s`;
  const late = () => new LastcallError("CLOUD_UNREACHABLE", found);
  try {
    return known(await withinTime(ask, { clock, limitMs: withinMs, late }, signal));
  } catch (error) {
    signal.throwIfAborted();
    return unknown(messageOf(error), isLastcallError(error) ? error : undefined);
  }
}

/** One object; undefined if it does not exist. Throws for any other failure. */
export async function objectAt(
  api: KubeApi,
  path: string,
  signal: AbortSignal,
): Promise<KubeObject | undefined> {
  const answer = await api.send({ method: "GET", path, signal });
  if (answer.status === 404) return undefined;
  if (answer.status !== 200) throw apiError({ method: "GET", path }, answer);
  return answer.body as KubeObject;
}
