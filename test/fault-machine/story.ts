import type { Violation } from "./checker.ts";
import { faultTable } from "./fault-table.ts";
import type { World } from "./world.ts";

/** The lines of a trace that tell what happened: faults, people, phases, acts and verdicts. */
export function storyOf(lines: readonly string[]): readonly string[] {
  return lines
    .filter(isTelling)
    .map((line) => (line.length > 240 ? `${line.slice(0, 237)}...` : line));
}

const telling: readonly RegExp[] = [
  /^\S+ (FAULT|PROCESS|PERSON|CLOUD SAYS|machine) /,
  /^>>> /,
  /^\S+ (CALM|END)$/,
  / cloud (release|check) /,
  /PATCH \/api\/v1\/nodes\/[^/ ]+ .*unschedulable/,
  /\/eviction /,
  /DELETE \/api\/v1\//,
  / logs (departure|pod-blocked|departure-failed|skipped|leader|plan-failed) /,
];

function isTelling(line: string): boolean {
  return telling.some((pattern) => pattern.test(line));
}

/** What a world is made of, for people. */
export function describeWorld(world: World): readonly string[] {
  const { nodes, policy, workloads, replicas, faults, hours, seed } = world;
  return [
    `seed ${seed}: ${nodes.length} nodes, ${replicas} controllers, ${hours} h of faults`,
    `policy: ${JSON.stringify(policy)}`,
    ...workloads.map((one) => `workload: ${JSON.stringify(one)}`),
    ...faults.map(({ kind, start, lasts, with: fields }, index) => {
      const from =
        "minute" in start
          ? `at minute ${start.minute}`
          : `${start.afterSeconds} s after ${start.phase} number ${start.nth}`;
      const span = lasts === "ever" ? "for ever" : `for ${lasts} min`;
      const what = `${faultTable[kind]?.says} ${JSON.stringify(fields)}`;
      return `fault #${index} ${kind}, ${from}, ${span}: ${what}`;
    }),
  ];
}

export function describeViolation({ checker, at, what }: Violation): string {
  return `${checker} at ${new Date(at).toISOString().slice(11, 19)}: ${what}`;
}
