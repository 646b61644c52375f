import { expect, it } from "vitest";
import type { GateAnswer, GateInquiry } from "../../src/core/departure/decision.ts";
import { minutes } from "../../src/core/time/time.ts";
import { beginPlanned, entangled, hasEnded, ledgerOf, waits } from "./capacity-story.ts";

const alone = new Map([
  ["n0", undefined],
  ["n1", undefined],
]);
const alerts = { url: "http://alertmanager:9093", matchers: ['severity="critical"'] };
const firing = (): GateAnswer => ({
  alerts: ["Down"],
  blockingPods: new Map(),
  gangs: alone,
});
const blocking = (node: string): GateAnswer => ({
  ...{ alerts: [], blockingPods: new Map([[node, "default/import"]]), gangs: alone },
});
const gang = (node: string): GateAnswer => ({
  ...{ alerts: [], blockingPods: new Map(), gangs: new Map([...alone, [node, "JobSet ml/train"]]) },
});

it.each([
  { what: "an alert", answer: firing, reason: "AlertsFiring" },
  { what: "a blocking pod", answer: blocking, reason: "BlockingPod" },
  { what: "a workload on several nodes", answer: gang, reason: "GangWorkload" },
])(
  "a departure that has waited for another drain respects $what that comes meanwhile",
  async ({ answer, reason }) => {
    const world = await entangled();
    const blockingPods = [{ matchLabels: { app: "import" } }];
    world.patchPolicy({ spec: { lifetime: { max: "24h" }, gates: { alerts, blockingPods } } });
    for (const name of ["n0", "n1"]) beginPlanned(world, name);
    let now: GateAnswer = { alerts: [], blockingPods: new Map(), gangs: alone };
    const gates = {
      ask: async (inquiries: readonly GateInquiry[]) =>
        Object.fromEntries(inquiries.map(({ policy: { name } }) => [name, now])),
    };
    const stop = new AbortController();
    const running = world.startController(stop.signal, { gates });
    await world.passUntil(() => ["n0", "n1"].some(waits(world)), minutes(1));
    const [second = ""] = ["n0", "n1"].filter(waits(world));
    now = answer(second);
    await world.passUntil(hasEnded(world, second === "n0" ? "n1" : "n0"), minutes(15));
    await world.pass(minutes(15));
    stop.abort();
    await running;
    expect(ledgerOf(world, second)).toMatchObject({ phase: "Held", reason });
    expect(world.steps).not.toContain(`cordon ${second}`);
  },
);
