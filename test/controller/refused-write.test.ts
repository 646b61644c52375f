/** Writes that are refused for hours, in a departure under way that cannot do without them. */
import { expect, it } from "vitest";
import type { KubeAnswer, KubeRequest } from "../../src/contracts/kube-api.ts";
import { hours, minutes, seconds } from "../../src/core/time/time.ts";
import { ModelWorld, spotPolicy, webWorkload } from "../support/model-world.ts";
import { depart, noticeOf } from "./capacity-story.ts";

const isStatus = ({ method, path }: KubeRequest) =>
  method === "PATCH" && path.includes("/departures/") && path.endsWith("/status");
const isMark = ({ method, path }: KubeRequest) => method === "PATCH" && path.endsWith("/nodes/n0");

/** n0 leaves as requested. As soon as it drains, some writes are refused. */
async function refused(
  isRefused: (request: KubeRequest) => boolean,
  { code, then }: { readonly code: number; readonly then?: (world: ModelWorld) => void },
): Promise<readonly string[]> {
  const world = new ModelWorld();
  for (const name of ["n0", "n1", "n2"]) world.addNode(name, name);
  webWorkload(world, { replicas: 6, maxUnavailable: 6, exitAfterSeconds: 60 });
  spotPolicy(world, { lifetime: {} });
  const stop = new AbortController();
  const running = world.startController(stop.signal);
  await world.pass(seconds(10));
  depart(world, "n0");
  await world.passUntil(() => world.statusOf("n0").phase === "Draining", minutes(1));
  const message = 'admission webhook "guard.example.com" denied the request';
  const send = world.watched.send.bind(world.watched);
  world.watched.send = async (request): Promise<KubeAnswer> => {
    if (!isRefused(request)) return send(request);
    await world.clock.sleep(seconds(1));
    return { status: code, body: { kind: "Status", status: "Failure", message, code } };
  };
  then?.(world);
  await world.pass(hours(2));
  stop.abort();
  await running;
  const told = world.events.filter(({ reason }) => reason === "RequestRefused");
  return told.flatMap((one) => (one.about.kind === "Node" ? one.message : []));
}

it.each([403, 500])("a status that is refused is told by an Event, rarely: %i", async (code) => {
  const told = await refused(isStatus, { code });
  expect(told.length).toBeGreaterThanOrEqual(3);
  expect(told.length).toBeLessThanOrEqual(6);
  for (const one of told) expect(one).toContain("guard.example.com");
});

/** n0 drains as requested, when the status of every Departure is refused. */
class Unrecorded {
  readonly world = new ModelWorld();
  #isRefused = false;
  #leader = new AbortController();
  #running: Promise<void> | undefined;

  async begin(code: number, { reason = "Forbidden", drain = "5m", exit = 60 } = {}): Promise<void> {
    const { world } = this;
    for (const name of ["n0", "n1", "n2"]) world.addNode(name, name);
    webWorkload(world, { replicas: 6, maxUnavailable: 6, exitAfterSeconds: exit });
    const instance = { release: "Recreate", awaitMachine: "10m" };
    spotPolicy(world, { lifetime: {}, drain: { timeout: drain }, instance });
    const send = world.watched.send.bind(world.watched);
    const message = 'admission webhook "guard.example.com" denied the request';
    const body = { kind: "Status", status: "Failure", reason, message, code };
    world.watched.send = async (request): Promise<KubeAnswer> =>
      this.#isRefused && isStatus(request) ? { status: code, body } : send(request);
    this.#lead();
    await world.pass(seconds(10));
    depart(world, "n0");
    await world.passUntil(() => world.statusOf("n0").phase === "Draining", minutes(1));
    this.#isRefused = true;
  }

  #lead(): void {
    this.#leader = new AbortController();
    this.#running = this.world.startController(this.#leader.signal);
  }

  async changeLeader(): Promise<void> {
    await this.end();
    this.#lead();
  }

  accept(): void {
    this.#isRefused = false;
  }

  async end(): Promise<void> {
    this.#leader.abort();
    await this.#running;
  }
}

const codes: readonly [number, string][] = [
  [403, "Forbidden"],
  [409, "Conflict"],
  [500, "InternalError"],
];

it.each(codes)(
  "a node is given back if its status is refused for ever: %i %s",
  async (code, reason) => {
    const one = new Unrecorded();
    const { world } = one;
    await one.begin(code, { reason });
    // The drain takes a minute, and its release is not recorded within awaitMachine.
    await world.pass(minutes(10));
    expect(world.marksOf("n0")).toContain("unschedulable");
    await world.pass(minutes(2));
    expect(world.marksOf("n0")).toEqual([]);
    expect(world.released).toEqual([]);
    const told = world.events.filter(({ reason: why }) => why === "RequestRefused");
    expect(told.map(({ message }) => message).join()).toContain("guard.example.com");
    for (const { metadata } of world.list("/api/v1/pods")) {
      const path = `/api/v1/namespaces/default/pods/${metadata?.name}`;
      world.api.handle({ method: "DELETE", path });
    }
    await world.pass(hours(2));
    expect(world.podsOn("n0")).not.toEqual([]);
    const before = world.steps.length;
    // The next leader knows only what is recorded, and finds the node in use.
    await one.changeLeader();
    await world.pass(hours(1));
    expect(world.steps.slice(before).filter((step) => step !== "uncordon n0")).toEqual([]);
    expect(world.released).toEqual([]);
    one.accept();
    await world.pass(minutes(2));
    await one.end();
    expect(world.statusOf("n0")).toMatchObject({ phase: "Ended" });
    expect(world.marksOf("n0")).toEqual([]);
  },
);

it("a node that was given back without a record is drained by a notice all the same", async () => {
  const one = new Unrecorded();
  const { world } = one;
  await one.begin(403);
  await world.pass(minutes(15));
  expect(world.marksOf("n0")).toEqual([]);
  noticeOf(world, "n0", seconds(120));
  await world.pass(seconds(5));
  expect(world.marksOf("n0")).toContain("unschedulable");
  await one.end();
});

it.each([403, 500])("an uncordon that is refused is told by an Event, rarely: %i", async (code) => {
  // A person ends the departure, and our marks are still to be removed.
  const then = (world: ModelWorld) => world.patchNode("n0", { spec: { unschedulable: false } });
  const told = await refused(isMark, { code, then });
  expect(told.length).toBeGreaterThanOrEqual(3);
  expect(told.length).toBeLessThanOrEqual(6);
  for (const one of told) expect(one).toContain("guard.example.com");
});
