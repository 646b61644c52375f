import { realClock } from "../src/runtime/real-clock.ts";
import { startComputeServer } from "../test/support/compute-server.ts";
import { waitUntil } from "../test/support/wait-until.ts";
import {
  type BenchWorld,
  controllerUser,
  fillFleet,
  rest,
  startBenchWorld,
} from "./bench-world.ts";
import { countByKind } from "./burst.ts";
import { type ControllerProcess, startController } from "./controller-process.ts";
import { type Figure, writeResult } from "./result-file.ts";

const idleSeconds = Number(process.env.BENCH_IDLE_SECONDS ?? 300);
/** Each watch ends after 30 to 50 minutes and is reopened: nodes, departures, policies, lease. */
const watchesPerHour = 4 * 2;

/** The project of the nodes that kwok runs. */
const project = { id: "e2e-project", number: "601024681890" };

export interface IdleFleet {
  /** The name of the result file. */
  readonly bench: string;
  readonly nodes: number;
  readonly podsPerNode: number;
  /** For resident memory after idling. */
  readonly goalMiB: number;
}

/** A fleet that rotates is not idle: with this spacing the first departure is hours away. */
function policyFor({ nodes }: IdleFleet) {
  const spacingSeconds = Math.min(60, Math.floor(60_000 / nodes));
  return {
    apiVersion: "lastcall.dev/v1alpha1",
    kind: "DeparturePolicy",
    metadata: { name: "spot" },
    spec: {
      lifetime: { max: "24h", reserve: "30m" },
      spacing: { mode: "Late", min: `${spacingSeconds}s` },
    },
  };
}

interface Idle {
  readonly syncedMiB: number;
  readonly idleMiB: number;
  readonly peakMiB: number;
  readonly requestsPerHour: number;
  readonly cpuShare: number;
}

async function measure(
  world: BenchWorld,
  about: { readonly controller: ControllerProcess; readonly nodes: number },
): Promise<Idle> {
  const { controller, nodes } = about;
  await untilPlanned(world, nodes);
  const syncedMiB = controller.memory().nowMiB;
  const before = (await world.audit.of(controllerUser)).length;
  const cpuBefore = controller.cpuSeconds();
  await rest(idleSeconds);
  const { nowMiB, peakMiB } = controller.memory();
  const asked = (await world.audit.of(controllerUser)).slice(before);
  console.log(JSON.stringify(countByKind(asked)));
  return {
    ...{ syncedMiB, idleMiB: nowMiB, peakMiB },
    requestsPerHour: Math.round((asked.length * 3600) / idleSeconds) + watchesPerHour,
    cpuShare: (controller.cpuSeconds() - cpuBefore) / idleSeconds,
  };
}

/** Waits until every node has its Departure. */
async function untilPlanned({ plane }: BenchWorld, nodes: number): Promise<void> {
  const path = "/apis/lastcall.dev/v1alpha1/departures?limit=1";
  await waitUntil(
    async () => {
      const { metadata } = (await plane.request({ path })).body;
      return 1 + (metadata.remainingItemCount ?? 0) >= nodes;
    },
    { what: `${nodes} departures are planned`, timeoutMs: 300_000, intervalMs: 500 },
  );
}

function figuresOf(idle: Idle, about: IdleFleet & { readonly access: string }): Figure[] {
  const { access, goalMiB, nodes, podsPerNode } = about;
  const fleet = `${nodes} nodes, ${nodes * podsPerNode} pods, ${access}`;
  return [
    { name: `resident once synced, ${fleet}`, value: idle.syncedMiB, unit: "MiB" },
    { name: `resident after idling, ${fleet}`, value: idle.idleMiB, unit: "MiB", goal: goalMiB },
    { name: `peak resident, ${fleet}`, value: idle.peakMiB, unit: "MiB" },
    {
      name: `steady requests, ${fleet}`,
      value: idle.requestsPerHour,
      unit: "requests/h",
      goal: 200,
    },
  ];
}

/**
 * What the controller costs while nothing happens: resident memory of the bundle on the real
 * control plane, once it is synced and after five minutes, and API requests per hour as counted in
 * the server's audit log.
 */
export async function benchIdleController(size: IdleFleet): Promise<void> {
  const { bench, nodes, podsPerNode } = size;
  const world = await startBenchWorld();
  const cloud = await startComputeServer({ clock: realClock, project });
  try {
    const fleet = await fillFleet(world, { prefix: "spot", ...size });
    for (const { name, zone } of fleet) cloud.model.addMachine({ name, zone });
    const applied = await world.plane.kubectl(["apply", "-f", "-"], {
      input: JSON.stringify(policyFor(size)),
    });
    if (applied.code !== 0) throw new Error(`Cannot apply the policy: ${applied.stderr}`);
    const args = ["--gcp-endpoint", cloud.endpoint];
    const start = { ...world, token: world.controllerToken, args };
    const controller = await startController(start);
    const idle = await measure(world, { controller, nodes });
    await controller.stop();
    const { access, environment } = controller;
    writeResult({
      bench,
      setting: {
        nodes,
        pods: nodes * podsPerNode,
        idleSeconds,
        access,
        ...environment,
        cpuShare: idle.cpuShare,
      },
      figures: figuresOf(idle, { ...size, access }),
    });
  } finally {
    await cloud.close();
    await world.stop();
  }
}
