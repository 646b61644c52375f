import { computeEngine, withAgents } from "./agent-fleet.ts";
import { type BenchNode, type BenchWorld, controllerUser } from "./bench-world.ts";
import { type Burst, burstSince } from "./burst.ts";

/**
 * The same burst reported by agents from their metadata services: counted from the instant at which
 * the notices can be read.
 */
export function agentBurst(world: BenchWorld, fleet: readonly BenchNode[]): Promise<Burst> {
  return withAgents({ world, fleet, cloud: computeEngine }, (servers) => {
    const startAt = Date.now();
    for (const server of servers) computeEngine.take(server);
    return burstSince({ world, fleet, startAt, user: controllerUser });
  });
}
