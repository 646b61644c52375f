/** Writes that are refused for hours, in a departure under way that cannot do without them. */
import { expect, it } from "vitest";
import type { KubeAnswer, KubeRequest } from "../../src/contracts/kube-api.ts";
import { hours, minutes, seconds } from "../../src/core/time/time.ts";
import { ModelWorld, spotPolicy, webWorkload } from "../support/model-world.ts";
import { depart } from "./capacity-story.ts";

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

it.each([403, 500])("an uncordon that is refused is told by an Event, rarely: %i", async (code) => {
  // A person ends the departure, and our marks are still to be removed.
  const then = (world: ModelWorld) => world.patchNode("n0", { spec: { unschedulable: false } });
  const told = await refused(isMark, { code, then });
  expect(told.length).toBeGreaterThanOrEqual(3);
  expect(told.length).toBeLessThanOrEqual(6);
  for (const one of told) expect(one).toContain("guard.example.com");
});
