import type { ActionRunner, ActionRunners } from "../contracts/action-runner.ts";
import type { InstanceReleaser, LifecycleHooks, ReleaserChoice } from "../contracts/cloud.ts";
import type { ClusterPorts } from "../contracts/cluster.ts";
import type { KubeApi, KubeRequest } from "../contracts/kube-api.ts";
import type { ActionKind } from "../core/policy/action.ts";
import { LastcallError } from "../errors.ts";

/** What a leader acts through, before it is fenced. */
export interface TermPorts {
  readonly api: KubeApi;
  /** Makes the ports of one term as leader. They send their requests through this API only. */
  readonly portsFor: (api: KubeApi) => ClusterPorts;
}

type LeadCheck = () => void;

/**
 * The ports of one term as leader: they act only while `mayAct` is true. This is the only check of
 * it, and it is made when a request is sent, because in a burst a write waits for its turn, and
 * another replica may lead by then. What only reads is not checked.
 */
export function fencedPorts({ api, portsFor }: TermPorts, mayAct: () => boolean): ClusterPorts {
  const check: LeadCheck = () => {
    if (mayAct()) return;
    throw new LastcallError(
      "LEASE_LOST",
      "Cannot act: the lease may have been lost, only the leader acts",
    );
  };
  const ports = portsFor(fencedApi(api, check));
  const { releaserFor, hooks, actionPorts } = ports;
  return {
    ...ports,
    releaserFor: fencedReleasers(releaserFor, check),
    hooks: hooks && fencedHooks(hooks, check),
    actionPorts: actionPorts && {
      ...actionPorts,
      runners: fencedRunners(actionPorts.runners, check),
    },
  };
}

function fencedApi(api: KubeApi, check: LeadCheck): KubeApi {
  return {
    send: async (request) => {
      if (!isWrite(request)) return api.send(request);
      // What is asked for later than that does not wait for a turn in vain.
      check();
      return api.send(fencedWrite(request, check));
    },
    watch: (request) => api.watch(request),
  };
}

/** A review is a question: the API server stores nothing. */
const reviews = /^\/apis\/(authentication|authorization)\.k8s\.io\//;

function isWrite({ method, path }: KubeRequest): boolean {
  return method !== "GET" && !reviews.test(path);
}

function fencedWrite(request: KubeRequest, check: LeadCheck): KubeRequest {
  const bodyAtTurn = (): unknown => {
    check();
    return request.bodyAtTurn?.() ?? request.body;
  };
  return { ...request, bodyAtTurn };
}

function fencedReleasers(releaserFor: ReleaserChoice, check: LeadCheck): ReleaserChoice {
  return (machine) => {
    const releaser = releaserFor(machine);
    return releaser && fencedReleaser(releaser, check);
  };
}

/** The last look comes immediately before each request that releases the machine. */
function fencedReleaser(releaser: InstanceReleaser, check: LeadCheck): InstanceReleaser {
  return {
    describe: (...asked) => releaser.describe(...asked),
    check: (...asked) => releaser.check(...asked),
    release: async (request, signal) => {
      check();
      const lastLook = () => request.lastLook().finally(check);
      return releaser.release({ ...request, lastLook }, signal);
    },
  };
}

function fencedHooks(hooks: LifecycleHooks, check: LeadCheck): LifecycleHooks {
  return {
    complete: async (...asked) => {
      check();
      return hooks.complete(...asked);
    },
    extend: async (...asked) => {
      check();
      return hooks.extend(...asked);
    },
    limits: (...asked) => hooks.limits(...asked),
  };
}

function fencedRunners(runners: ActionRunners, check: LeadCheck): ActionRunners {
  return async (kind) => {
    const runner = await runners(kind);
    return runner && fencedRunner(runner, check);
  };
}

function fencedRunner<Kind extends ActionKind>(
  runner: ActionRunner<Kind>,
  check: LeadCheck,
): ActionRunner<Kind> {
  return {
    check: (...asked) => runner.check(...asked),
    prepare: (...asked) => runner.prepare(...asked),
    apply: async (...asked) => {
      check();
      return runner.apply(...asked);
    },
    undo: async (...asked) => {
      check();
      return runner.undo(...asked);
    },
  };
}
