/** The API server answers, and shows nothing of one kind of object any more. */
import { expect, it } from "vitest";
import type { KubeRequest } from "../../src/contracts/kube-api.ts";
import { formatInstant, minutes, plus, seconds } from "../../src/core/time/time.ts";
import { LastcallError } from "../../src/errors.ts";
import { capacityStory, depart, ledgerOf, workload } from "./capacity-story.ts";

it.each(["nodes", "departurepolicies", "departures"])(
  "a node does not leave while nothing is heard of %s: what forbids it may not have been seen",
  async (kind) => {
    const world = capacityStory({ replacement: { when: "None" } });
    workload(world, "web", { replicas: 3, cpu: "1", maxUnavailable: 1 });
    await world.pass(seconds(30));
    const { watched } = world;
    const [send, watch] = [watched.send.bind(watched), watched.watch.bind(watched)];
    let isCut = false;
    const refuse = ({ path }: Pick<KubeRequest, "path">): void => {
      if (!isCut || !path.endsWith(`/${kind}`)) return;
      throw new LastcallError("API_UNREACHABLE", "connection refused", { retryable: true });
    };
    watched.send = async (request) => {
      if (request.method === "GET") refuse(request);
      return send(request);
    };
    watched.watch = (request) => {
      refuse(request);
      return watch(request);
    };
    const over = new AbortController();
    const running = world.startController(over.signal);
    await world.pass(minutes(1));
    depart(world, "n0", { departAt: formatInstant(plus(world.clock.now(), minutes(6))) });
    await world.pass(seconds(10));
    isCut = true;
    world.api.dropWatches(kind);
    await world.pass(minutes(10));
    expect(world.get("/api/v1/nodes/n0")?.spec).not.toHaveProperty("unschedulable");
    const { phase, reason, message } = ledgerOf(world, "n0");
    expect({ phase, reason }).toEqual({ phase: "Held", reason: "FleetUnhealthy" });
    expect(message).toMatch(/sent nothing about (nodes|policies|departures) for more than 3m/);
    isCut = false;
    await world.pass(minutes(3));
    expect(ledgerOf(world, "n0")).toMatchObject({ phase: "Ended", outcome: "Planned" });
    over.abort();
    await running;
  },
);
