import { crdOf } from "../../config/crd.ts";
import { resourceDefinitions } from "../../config/resource-definition.ts";
import type { Clock } from "../../contracts/clock.ts";
import type { InstanceReleaser } from "../../contracts/instance-releaser.ts";
import type { KubeApi } from "../../contracts/kube-api.ts";
import type { MachineBirths } from "../../contracts/machine-births.ts";
import type { Log, Metrics } from "../../contracts/telemetry.ts";
import { seededRng } from "../../core/chance/rng.ts";
import { LeaderLease } from "../../kube/leader-lease.ts";
import { startDemoWorld } from "../../sim/demo-world.ts";
import type { ModelCluster } from "../../sim/model-cluster.ts";
import {
  type AssembledController,
  assembleController,
  type ControllerParts,
} from "../assemble-controller.ts";

export interface DemoFleet {
  readonly clock: Clock;
  readonly seed: number;
  readonly nodes: number;
}

/** The name under which the demo's controller leads and speaks. */
export const demoActor = "lastcall-demo";

/** The demo's fleet as it is before anybody acts upon it. */
export function startFleet(fleet: DemoFleet): ModelCluster {
  return startDemoWorld({ ...fleet, definitions: resourceDefinitions.map(crdOf) });
}

/** The real controller, leader election and all, over the model; it does not run yet. */
export function controllerOn(
  world: DemoFleet & {
    readonly api: KubeApi;
    readonly releaser: InstanceReleaser;
    readonly births: MachineBirths;
    /** Absent: the workloads are not audited. */
    readonly audit?: ControllerParts["audit"];
  },
  log: Log,
): AssembledController {
  const { api, clock, seed } = world;
  // A chance of its own, so that what the controller draws does not change the fleet's fate.
  const rng = seededRng(seed + 1);
  const identity = demoActor;
  const lease = { api, clock, rng, namespace: "lastcall", name: "lastcall", identity };
  return assembleController({
    api,
    clock,
    rng,
    fetch: noNetwork,
    log,
    metrics: noMetrics,
    namespace: "lastcall",
    identity,
    leadership: new LeaderLease(lease),
    releaserFor: () => world.releaser,
    births: world.births,
    audit: world.audit,
    dryRun: false,
  });
}

const noMetrics: Metrics = { count: () => {}, set: () => {}, observe: () => {} };

/** The demo's policy has no gate that asks the outside; nothing leaves this process. */
function noNetwork(): Promise<Response> {
  return Promise.reject(new TypeError("the demo reaches no network"));
}
