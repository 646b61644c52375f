import { clusterPolicyReader } from "../../config/policy/parse-policy-object.ts";
import type { ActionPorts } from "../../contracts/action-runner.ts";
import type { Clock } from "../../contracts/clock.ts";
import type {
  LaunchTimes,
  LifecycleHooks,
  NoticeFeed,
  ReleaserChoice,
} from "../../contracts/cloud.ts";
import type { Fleet } from "../../contracts/cluster.ts";
import type { KubeApi } from "../../contracts/kube-api.ts";
import type { Leadership } from "../../contracts/leadership.ts";
import type { Log, Metrics } from "../../contracts/telemetry.ts";
import { Controller, type ControllerOptions } from "../../controller/controller.ts";
import type { Rng } from "../../core/chance/chance.ts";
import { cronProblem } from "../../core/limits/windows.ts";
import type { Policy } from "../../core/policy/policy.ts";
import { type LastcallError, messageOf } from "../../errors.ts";
import {
  KubeClusterCapacity,
  KubePlaceholders,
  KubeVolumeAttachments,
  placeholderImage,
} from "../../kube/cluster-capacity.ts";
import { KubeDepartureStore } from "../../kube/departure-store.ts";
import { KubeEventSink } from "../../kube/event-sink.ts";
import { KubeFleet } from "../../kube/fleet.ts";
import { KubeGateSource } from "../../kube/gate-source.ts";
import { KubeNodeMarks } from "../../kube/node/node-marks.ts";
import { KubeNodePods } from "../../kube/node/node-pods.ts";
import { NodeClaimReleaser } from "../../kube/node-claim-releaser.ts";
import { KubePolicyStatus } from "../../kube/policy-status.ts";
import {
  type ActionPortOptions,
  actionPorts,
  alertGate,
  ownedMachines,
} from "./controller-ports.ts";

/** The parts of a controller, the same over a real cluster and over the model. */
export interface AssemblyOptions {
  readonly api: KubeApi;
  readonly clock: Clock;
  readonly rng: Rng;
  readonly log: Log;
  readonly metrics: Metrics;
  /** The controller's own namespace, where its placeholder pods are created. */
  readonly namespace: string;
  /** The image of the placeholder pods. Default: the Kubernetes pause image. */
  readonly placeholderImage?: string | undefined;
  /** The replica that is named in Events. */
  readonly identity: string;
  readonly leadership: Leadership;
  readonly releaserFor: ReleaserChoice;
  /**
   * Completes the lifecycle hooks of groups that wait until a node is ready or drained. Default:
   * none are completed.
   */
  readonly hooks?: LifecycleHooks | undefined;
  readonly joinWithinMs?: ControllerOptions["joinWithinMs"];
  /** Reaches the hosts that policies name. Default: no action can run, no alert is known. */
  readonly actions?: Pick<ActionPortOptions, "allowed" | "env" | "follow"> | undefined;
  /** In place of those of `actions`: for a model, which has no network. */
  readonly actionPorts?: ActionPorts | undefined;
  /** Reads the launch times of machines from their cloud. */
  readonly launchTimes?: LaunchTimes | undefined;
  /** The sources of notices from outside the cluster, for the watched fleet. */
  readonly feedsFor?: ((fleet: Fleet) => readonly NoticeFeed[]) | undefined;
  /** Use these policies instead of the cluster's. */
  readonly fixedPolicies?: readonly Policy[] | undefined;
  /** Default: workloads are not audited. */
  readonly audit?: ControllerOptions["audit"];
  /** The uid of the controller's own pod, if it runs in one. */
  readonly self?: string | undefined;
  readonly departingSoonMs?: ControllerOptions["departingSoonMs"];
  readonly keepsFailedPods?: ControllerOptions["keepsFailedPods"];
  /** Report every decision, write nothing. */
  readonly dryRun: boolean;
}

export interface AssembledController {
  readonly controller: Controller;
  /** The fleet that the controller watches, for other readers. */
  readonly fleet: Fleet;
}

/** Assembles the controller over a Kubernetes API without running it. */
export function assembleController(options: AssemblyOptions): AssembledController {
  const { api, clock, rng, log, metrics, identity, fixedPolicies } = options;
  const countError = (code: string): void => metrics.count("lastcall_errors_total", { code });
  const onWatchError = (error: LastcallError): void => {
    countError(error.code);
    log.warn("watch-error", { code: error.code, error: error.message });
  };
  const fleet = new KubeFleet({
    api,
    clock,
    rng,
    readPolicy: clusterPolicyReader({ cronProblem }),
    fixedPolicies,
    onError: onWatchError,
  });
  // The fleet's watches report an outage; those of the drains would repeat it for each drain.
  const onError = (error: LastcallError): void => {
    if (!error.retryable) onWatchError(error);
  };
  const events = new KubeEventSink({
    api,
    clock,
    instance: identity,
    onLost: () => countError("EVENT_LOST"),
  });
  const controller = new Controller({
    fleet,
    gates: gateSource(options),
    launchTimes: options.launchTimes,
    feeds: options.feedsFor?.(fleet) ?? [],
    api,
    portsFor: portsOf(options, { onError, actionPorts: actionPortsOf(options, fleet) }),
    joinWithinMs: options.joinWithinMs,
    audit: options.audit,
    telemetry: { log, metrics, events },
    leadership: options.leadership,
    clock,
    rng,
    self: options.self,
    departingSoonMs: options.departingSoonMs,
    keepsFailedPods: options.keepsFailedPods,
    dryRun: options.dryRun,
  });
  return { controller, fleet };
}

/** The clients of the clouds are shared by all terms, those of the API server belong to one. */
function portsOf(
  options: AssemblyOptions,
  shared: {
    readonly onError: (error: LastcallError) => void;
    readonly actionPorts: ActionPorts | undefined;
  },
): ControllerOptions["portsFor"] {
  const { clock, rng, namespace, hooks } = options;
  const { onError, actionPorts } = shared;
  return (api) => {
    const tools = { api, clock, rng, onError };
    const nodeClaims = new NodeClaimReleaser({ api, clock, rng });
    return {
      marks: new KubeNodeMarks({ api, clock, writesCordonTaint: true }),
      pods: new KubeNodePods(tools),
      store: new KubeDepartureStore(api),
      placeholders: new KubePlaceholders({
        ...tools,
        namespace,
        image: options.placeholderImage ?? placeholderImage,
      }),
      capacity: new KubeClusterCapacity(api),
      attachments: new KubeVolumeAttachments(tools),
      policyStatus: new KubePolicyStatus(api, clock),
      releaserFor: (machine) =>
        machine.mode === "NodeClaim" ? nodeClaims : options.releaserFor(machine),
      ...{ hooks, actionPorts },
    };
  };
}

function actionPortsOf(options: AssemblyOptions, fleet: Fleet): ActionPorts | undefined {
  const { actions, api, namespace, clock, rng, log, metrics } = options;
  if (actions === undefined) return options.actionPorts;
  return actionPorts({
    ...{ ...actions, api, namespace, clock, rng },
    machines: () => ownedMachines(fleet.view()),
    onError: ({ code, message }) => {
      metrics.count("lastcall_errors_total", { code });
      log.warn("action-trouble", { code, error: message });
    },
  });
}

function noNetwork(): Promise<never> {
  return Promise.reject(new Error("Cannot ask Alertmanager: this controller reaches no network"));
}

function gateSource({ api, clock, actions, log }: AssemblyOptions): KubeGateSource {
  return new KubeGateSource({
    api,
    clock,
    firingAlerts: actions === undefined ? noNetwork : alertGate({ ...actions, clock }),
    onError: (error) => log.warn("gate-error", { error: messageOf(error) }),
  });
}
