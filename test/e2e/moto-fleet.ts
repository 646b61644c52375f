import { setTimeout as pause } from "node:timers/promises";
import type { ControlPlane } from "../support/control-plane.ts";
import { Moto } from "../support/moto.ts";
import { type Relay, startRelay } from "../support/relay.ts";
import { type FleetCloud, MachineWitness } from "./fleet-cloud.ts";

const group = "spot";
const zone = "eu-west-1a";

/**
 * An Auto Scaling group in moto: an instance terminates at once, and is replaced at once.
 */
export class MotoFleet implements FleetCloud {
  readonly flags: readonly string[] = [];
  readonly witness: MachineWitness;
  readonly #moto: Moto;
  readonly #relay: Relay;
  /** Node names by instance ID. */
  readonly #names = new Map<string, string>();
  readonly #free: string[];
  readonly #closed = new AbortController();
  #following: Promise<void> | undefined;

  static async start(plane: ControlPlane, size: number): Promise<MotoFleet> {
    const moto = await Moto.start();
    const ids = await makeGroup(moto, size);
    const witness = new MachineWitness(plane);
    const names = new Map<string, string>();
    const relay = await startRelay({
      target: moto.url,
      before: async ({ body }) => {
        const machine = released(body, names);
        if (machine !== undefined) await witness.seeRelease(machine);
        return "Pass";
      },
      // Before the caller gets the response, with which moto has terminated the instance.
      after: async ({ body }) => {
        const machine = released(body, names);
        if (machine !== undefined) witness.seeEnd(machine);
      },
    });
    return new MotoFleet({ moto, relay, witness, ids, names });
  }

  private constructor(parts: {
    readonly moto: Moto;
    readonly relay: Relay;
    readonly witness: MachineWitness;
    readonly ids: readonly string[];
    readonly names: Map<string, string>;
  }) {
    this.#moto = parts.moto;
    this.#relay = parts.relay;
    this.witness = parts.witness;
    this.#free = [...parts.ids];
    this.#names = parts.names;
  }

  get environment(): Readonly<Record<string, string>> {
    return { ...this.#moto.environment, AWS_ENDPOINT_URL: this.#relay.url };
  }

  async machineFor(name: string) {
    const id = this.#free.shift() ?? "";
    this.#names.set(id, name);
    return { providerID: `aws:///${zone}/${id}`, labels: { "eks.amazonaws.com/nodegroup": group } };
  }

  async open(): Promise<void> {
    this.#following = this.#follow();
  }

  async stop(): Promise<void> {
    this.#closed.abort();
    this.witness.close();
    await this.#following?.catch(() => undefined);
    await this.#relay.close();
    await this.#moto.stop();
  }

  /** Registers a Node for every new instance, as its kubelet would. */
  async #follow(): Promise<void> {
    const { signal } = this.#closed;
    while (!signal.aborted) {
      const text = await this.#moto.query("ec2", { Action: "DescribeInstances" });
      for (const [, id = "", state = ""] of text.matchAll(
        /<instanceId>([^<]+)<\/instanceId>[\s\S]*?<instanceState>[\s\S]*?<name>([^<]+)<\/name>/g,
      )) {
        const name = this.#names.get(id);
        if (state === "running" && name === undefined) {
          const fresh = this.witness.nextName();
          this.#names.set(id, fresh);
          await this.witness.register({ name: fresh, providerID: `aws:///${zone}/${id}` });
        }
      }
      await pause(200, undefined, { signal }).catch(() => undefined);
    }
  }
}

/** The Node name of the machine that a request releases; undefined for any other request. */
function released(body: string, names: ReadonlyMap<string, string>): string | undefined {
  const asked = new URLSearchParams(body);
  if (asked.get("Action") !== "TerminateInstanceInAutoScalingGroup") return undefined;
  return names.get(asked.get("InstanceId") ?? "") ?? "an instance that is no node";
}

/** Returns the IDs of its instances. */
async function makeGroup(moto: Moto, size: number): Promise<readonly string[]> {
  const configuration = { LaunchConfigurationName: group, InstanceType: "m5.large" };
  await moto.query("autoscaling", {
    Action: "CreateLaunchConfiguration",
    ...configuration,
    ImageId: "ami-12c6146b",
  });
  await moto.query("autoscaling", {
    ...{ Action: "CreateAutoScalingGroup", AutoScalingGroupName: group },
    ...{ LaunchConfigurationName: group, "AvailabilityZones.member.1": zone },
    ...{ MinSize: "0", MaxSize: "20", DesiredCapacity: String(size) },
  });
  const text = await moto.query("autoscaling", { Action: "DescribeAutoScalingInstances" });
  return [...text.matchAll(/<InstanceId>([^<]+)<\/InstanceId>/g)].map(([, id = ""]) => id);
}
