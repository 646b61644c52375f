import { type AzureCompute, createAzureCompute } from "../../src/cloud/azure/azure-compute.ts";
import { seededRng } from "../../src/core/chance/chance.ts";
import { instant } from "../../src/core/time/time.ts";
import type { ReleaserWorld } from "../contract/instance-releaser.contract.ts";
import type { LaunchTimeWorld } from "../contract/launch-times.contract.ts";
import { type ArmMachine, ArmServer, scaleSet } from "./arm-server.ts";
import { ManualClock } from "./manual-clock.ts";
import { countingFetch, passTime } from "./pass-time.ts";

/** A releaser and the Resource Manager server behind it, both on one manual clock. */
export interface AzureWorld extends ReleaserWorld, LaunchTimeWorld, Pick<AzureCompute, "groupsOf"> {
  readonly server: ArmServer;
  readonly clock: ManualClock;
}

export async function startAzureWorld(
  settings: { readonly cluster?: string } = {},
): Promise<AzureWorld> {
  const clock = new ManualClock(instant(Date.parse("2026-11-20T00:00:00Z")));
  const server = await new ArmServer(clock).start();
  const counted = countingFetch();
  const azure = createAzureCompute({
    endpoint: server.url,
    cluster: settings.cluster,
    ...{ env: {}, fetch: counted.fetch, clock, rng: seededRng(1) },
  });
  const pass = <T>(work: Promise<T>) =>
    passTime(work, { clock, quiet: () => counted.inFlight() === 0 });
  const launched: ArmMachine[] = [];

  /** The latest machine in the place of this one. */
  const standing = (providerID: string) => {
    const place = launched.find(({ instance }) => instance === instanceIn(providerID))?.place;
    return server.machines.findLast((one) => one.place === place);
  };
  server.onBorn = (machine) => launched.push(machine);

  return {
    server,
    clock,
    ...azure,
    modes: ["Recreate", "Delete"],
    tellsTime: true,
    namesOf: (providerID) => [standing(providerID)?.name ?? ""],
    unknownProviderID: providerIdOf("4711"),
    addMachine(_, mode) {
      const machine = server.addMachine();
      machine.isNeeded = mode !== "Delete";
      launched.push(machine);
      return { providerID: providerIdOf(machine.instance), id: machine.vmId };
    },
    idOf: (providerID) => standing(providerID)?.vmId,
    async replace(providerID) {
      const machine = standing(providerID) as ArmMachine;
      machine.vmId = crypto.randomUUID();
      machine.createdAt = instant(machine.createdAt + 60_000);
      return machine.vmId;
    },
    remove: async (providerID) => server.remove(standing(providerID) as ArmMachine),
    fail: (fault) => {
      server.fault = fault;
    },
    heal: () => {
      server.fault = undefined;
    },
    asked: () => server.taken,
    bornHere: (providerID) => {
      const place = launched.find(({ instance }) => instance === instanceIn(providerID))?.place;
      return launched.filter((one) => one.place === place).length;
    },
    pass,
    passUntil: (condition) => pass(until(condition)),
    close: () => server.close(),
  };
}

export function providerIdOf(instance: string): string {
  return `azure://${scaleSet}/virtualMachines/${instance}`;
}

function instanceIn(providerID: string): string {
  return providerID.split("/").at(-1) ?? "";
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setImmediate(resolve));
}
