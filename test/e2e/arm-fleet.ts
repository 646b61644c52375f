import { seconds } from "../../src/core/time/time.ts";
import { realClock } from "../../src/runtime/real-clock.ts";
import { type ArmMachine, ArmServer, type ArmTimings, scaleSet } from "../support/arm-server.ts";
import type { ControlPlane } from "../support/control-plane.ts";
import { type Relay, startRelay } from "../support/relay.ts";
import { type FleetCloud, MachineWitness } from "./fleet-cloud.ts";

/**
 * Much faster than AKS, but in the same order: the operation, the machine's end, the autoscaler's
 * replacement.
 */
const timings: ArmTimings = {
  deletedAfterMs: seconds(0.5),
  replacedAfterMs: seconds(1),
  retryAfter: ["1", "1"],
};

/** An AKS node pool with its autoscaler, on our Resource Manager server. */
export class ArmFleet implements FleetCloud {
  readonly environment = {};
  readonly witness: MachineWitness;
  readonly #server: ArmServer;
  readonly #relay: Relay;

  static async start(plane: ControlPlane): Promise<ArmFleet> {
    const server = await new ArmServer(realClock, timings).start();
    const witness = new MachineWitness(plane);
    const relay = await startRelay({
      target: server.url,
      before: async ({ method, path, body }) => {
        if (method === "POST" && path.includes("/deleteMachines")) {
          const { machineNames } = JSON.parse(body) as { machineNames: readonly string[] };
          await witness.seeRelease(machineNames[0] ?? "");
        }
        return "Pass";
      },
    });
    server.url = relay.url;
    return new ArmFleet(server, relay, witness);
  }

  private constructor(server: ArmServer, relay: Relay, witness: MachineWitness) {
    this.#server = server;
    this.#relay = relay;
    this.witness = witness;
  }

  get flags(): readonly string[] {
    return ["--azure-endpoint", this.#relay.url];
  }

  async machineFor(name: string) {
    return { providerID: providerIdOf(this.#server.addMachine(undefined, name)) };
  }

  async open(): Promise<void> {
    this.#server.onGone = ({ name }) => this.witness.seeEnd(name);
    this.#server.onBorn = (machine) => {
      const { name } = machine;
      void this.witness.register({ name, providerID: providerIdOf(machine) }).catch(() => {});
    };
  }

  async stop(): Promise<void> {
    this.witness.close();
    await this.#relay.close();
    await this.#server.close();
  }
}

function providerIdOf({ instance }: ArmMachine): string {
  return `azure://${scaleSet}/virtualMachines/${instance}`;
}
