import { ComputeClient, parseComputeEndpoint } from "../../src/cloud/gcp/compute-client.ts";
import { ComputeLaunchTimes } from "../../src/cloud/gcp/compute-engine.ts";
import { ComputeReleaser } from "../../src/cloud/gcp/compute-releaser.ts";
import { noTokens, type TokenSource } from "../../src/cloud/release/rest-exchange.ts";
import { seededRng } from "../../src/core/chance/chance.ts";
import { instant, type Millis } from "../../src/core/time/time.ts";
import type { ReleaserWorld } from "../contract/instance-releaser.contract.ts";
import type { LaunchTimeWorld } from "../contract/launch-times.contract.ts";
import type { ComputeGroup, ComputeMachine } from "./compute-body.ts";
import {
  type ComputeFault,
  type ComputeServer,
  type ComputeServerOptions,
  startComputeServer,
} from "./compute-server.ts";
import { ManualClock } from "./manual-clock.ts";
import { countingFetch, passTime } from "./pass-time.ts";

/** A releaser and the Compute Engine server behind it, both on one manual clock. */
export interface ComputeWorld extends ReleaserWorld, LaunchTimeWorld {
  readonly server: ComputeServer;
  readonly clock: ManualClock;
  readonly client: ComputeClient;
  readonly group: ComputeGroup;
  readonly releaser: ComputeReleaser;
  /** The calls that reached the server, as `METHOD path`, without reads of instances. */
  acts(): readonly string[];
}

export interface ComputeWorldOptions {
  readonly server?: Partial<ComputeServerOptions>;
  readonly tokens?: TokenSource;
  readonly goneWithinMs?: Millis;
}

export const zone = "us-central1-a";

const faults = {
  Unreachable: { kind: "Drop" },
  RateLimited: { kind: "Refuse", status: 403, reason: "rateLimitExceeded" },
  RightMissing: { kind: "Refuse", status: 403, reason: "forbidden" },
} as const satisfies Record<string, ComputeFault>;

export async function startComputeWorld(options: ComputeWorldOptions = {}): Promise<ComputeWorld> {
  const clock = new ManualClock(instant(Date.parse("2026-11-20T00:00:00Z")));
  const launchTimes: ComputeMachine[] = [];
  const server = await startComputeServer({
    clock,
    onInstanceBorn: (machine) => launchTimes.push(machine),
    ...options.server,
  });
  const counted = countingFetch();
  const rng = seededRng(1);
  const client = new ComputeClient({
    endpoint: parseComputeEndpoint(server.endpoint),
    tokens: options.tokens ?? noTokens,
    fetch: counted.fetch,
    clock,
    rng,
  });
  const group = server.model.addGroup({ scope: "zones", location: zone, name: "gke-pool-grp" });
  const quiet = () => counted.inFlight() <= server.parked;
  const pass = <T>(work: Promise<T>) => passTime(work, { clock, quiet });
  const { goneWithinMs } = options;

  function machineOf(providerID: string): ComputeMachine | undefined {
    const name = providerID.split("/").at(-1);
    return server.model.machines(zone).find((machine) => machine.name === name);
  }

  return {
    server,
    clock,
    client,
    group,
    releaser: new ComputeReleaser({ client, clock, rng, goneWithinMs }),
    launchTimes: new ComputeLaunchTimes(client),
    modes: ["Recreate", "Delete", "DeleteInstance"],
    tellsTime: true,
    namesOf: (providerID) => [nameOf(providerID)],
    unknownProviderID: providerIdOf("nobody"),
    addMachine(name) {
      const machine = server.model.addMachine({ name, zone, group });
      return { providerID: providerIdOf(name), id: machine.id };
    },
    idOf: (providerID) => machineOf(providerID)?.id,
    replace: async (providerID) => server.model.replaceMachine(zone, nameOf(providerID)).id,
    remove: async (providerID) => server.model.removeMachine(zone, nameOf(providerID)),
    fail: (fault) => server.failNext(faults[fault], { times: 1_000 }),
    heal: () => server.stopFailing(),
    asked: () => server.model.taken,
    bornHere: (providerID) => launchTimes.filter(({ name }) => name === nameOf(providerID)).length,
    acts: () =>
      server.log
        .filter(({ method }) => method !== "GET")
        .map(({ method, path }) => `${method} ${path}`),
    pass,
    passUntil: (condition) => pass(until(condition)),
    close: () => server.close(),
  };
}

export function providerIdOf(name: string): string {
  return `gce://project1/${zone}/${name}`;
}

function nameOf(providerID: string): string {
  return providerID.split("/").at(-1) ?? "";
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setImmediate(resolve));
}
