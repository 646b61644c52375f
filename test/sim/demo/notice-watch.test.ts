import { expect, it } from "vitest";
import { instant, minutes, plus, seconds } from "../../../src/core/time/time.ts";
import { eventLoopTurn } from "../../../src/runtime/real-clock.ts";
import { podBehaviour } from "../../../src/sim/cluster-controllers/kubelet.ts";
import { NoticeWatch } from "../../../src/sim/demo/simulation-report.ts";
import { startModelCluster } from "../../../src/sim/model-cluster.ts";
import { VirtualClock } from "../../../src/sim/time/virtual-clock.ts";

it("A notice is told by its pods: when each was terminated, when it ended, and which was killed", async () => {
  const clock = new VirtualClock({ startAt: instant(0), settle: eventLoopTurn });
  const group = { name: "spot", zone: "z", size: 1, price: "Standard" } as const;
  const timings = { beforeShutdown: seconds(120), notice: seconds(125) };
  const cluster = startModelCluster({ clock, seed: 1, groups: [group], timings });
  const watch = new NoticeWatch(cluster);
  const [node] = cluster.cloud.machines();
  const path = "/api/v1/namespaces/default/pods";
  for (const [name, exits] of [
    ["quick", "6"],
    ["stuck", "never"],
  ] as const) {
    const spec = {
      ...{ nodeName: node?.name, terminationGracePeriodSeconds: 600 },
      containers: [{ name: "main", image: "x" }],
    };
    const metadata = { name, annotations: { [podBehaviour.exitSeconds]: exits } };
    cluster.api.handle({ method: "POST", path, body: { metadata, spec } });
  }
  await clock.advance(minutes(1));
  expect(watch.latest()).toBeUndefined();
  cluster.cloud.preempt(node?.name ?? "");
  await clock.advance(seconds(10));
  cluster.api.handle({ method: "DELETE", path: `${path}/quick` });
  await clock.advance(minutes(3));
  const noticedAt = plus(instant(0), minutes(1));
  expect(watch.latest()).toEqual({
    ...{ node: node?.name, noticedAt, goneAt: plus(noticedAt, seconds(125)) },
    pods: [
      {
        name: "quick",
        terminatingAt: plus(noticedAt, seconds(10)),
        endedAt: plus(noticedAt, seconds(16)),
      },
      // Only the shutdown terminated it, and the machine lost power while it was still running.
      { name: "stuck", terminatingAt: plus(noticedAt, seconds(120)), isKilled: true },
    ],
  });
  cluster.stop();
});
