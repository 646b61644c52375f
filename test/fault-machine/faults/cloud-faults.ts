import { seconds } from "../../../src/core/time/time.ts";
import { gkeShutdownGrace } from "../../../src/sim/cluster-controllers/kubelet.ts";
import { drawNode, type FaultKind, faultKind, withRule } from "../fault.ts";
import { cloudError } from "../process-cloud.ts";
import type { Stage } from "../stage.ts";
import type { CloudVerb } from "../surroundings.ts";

/** What the cloud does to machines, to our calls, and to what it has announced. */
export const cloudFaults: Readonly<Record<string, FaultKind>> = {
  "stock-out": faultKind({
    says: "groups get no new machines",
    draw: () => ({}),
    begin: ({ cluster: { cloud } }) => {
      cloud.setStockOut(true);
      return () => cloud.setStockOut(false);
    },
  }),
  "slow-stop": faultKind({
    says: "machines take long to stop",
    draw: ({ draw }) => ({ stopSeconds: draw.pick(200, 900, 1500) }),
    begin: (stage, { stopSeconds }) => {
      stage.cluster.cloud.setStopTime(seconds(stopSeconds));
      const { stopSeconds: usual } = stage.world.machines;
      return () => stage.cluster.cloud.setStopTime(seconds(usual));
    },
  }),
  "release-forgotten": faultKind({
    says: "the cloud accepts a release, and nothing happens",
    draw: () => ({}),
    begin: (stage) =>
      withRule(stage.cloudRules, ({ verb }) =>
        verb === "release" ? { kind: "Forgotten" as const } : undefined,
      ),
  }),
  "release-unanswered": faultKind({
    says: "the cloud releases machines, and answers with an error",
    draw: () => ({}),
    begin: (stage) =>
      withRule(stage.cloudRules, ({ verb }) =>
        verb === "release"
          ? { kind: "FailsAfter" as const, error: cloudError("CLOUD_UNREACHABLE") }
          : undefined,
      ),
  }),
  "cloud-refuses": faultKind({
    says: "one of the cloud's calls, or all, fail",
    draw: ({ draw }) => ({
      code: draw.pick(
        "CLOUD_UNREACHABLE" as const,
        "CLOUD_RATE_LIMITED" as const,
        "CLOUD_CREDENTIALS" as const,
        "CLOUD_RIGHT_MISSING" as const,
      ),
      only: draw.pick<CloudVerb | "All">("All", "release", "describe", "launchTimes"),
    }),
    begin: (stage, { code, only }) =>
      withRule(stage.cloudRules, ({ verb }) =>
        only === "All" || only === verb
          ? { kind: "Fails" as const, error: cloudError(code) }
          : undefined,
      ),
  }),
  "cloud-slow": faultKind({
    says: "the cloud answers late",
    draw: ({ draw }) => ({ ms: draw.pick(8000, 30_000, 90_000) }),
    begin: (stage, { ms }) => withRule(stage.cloudRules, () => ({ kind: "Late" as const, ms })),
  }),
  "machine-stopped": faultKind({
    says: "a machine is stopped while its Node stays",
    draw: ({ draw, nodes }) => ({ node: drawNode({ draw, nodes }) }),
    begin: (stage, { node }) => {
      const name = stage.machineName(node);
      const machine = stage.cluster.cloud.machine(name);
      if (machine?.state !== "Running") return undefined;
      stage.cluster.cloud.halt(name);
      return () => {
        if (stage.cluster.cloud.machine(name)?.id === machine.id) stage.cluster.cloud.take(name);
      };
    },
  }),

  notice: noticed("the cloud announces a machine's end, and takes it", "Taken"),
  "notice-withdrawn": noticed(
    "the cloud announces a machine's end, and withdraws that",
    "Withdrawn",
  ),
  "notice-unfulfilled": noticed("the cloud announces a machine's end, and forgets it", "Kept"),
  "notice-storm": faultKind({
    says: "the cloud announces the end of several machines at once, and takes them",
    draw: ({ draw, nodes }) => ({
      from: drawNode({ draw, nodes }),
      count: draw.between(2, Math.max(2, nodes)),
      leadSeconds: draw.pick(30, 120),
    }),
    begin: (stage, { from, count, leadSeconds }) => {
      for (let index = 0; index < count; index += 1) {
        announce(stage, {
          name: stage.machineName(index === 0 ? from : Math.max(0, from) + index),
          leadSeconds,
          end: "Taken",
        });
      }
      return undefined;
    },
  }),
  "taken-unannounced": faultKind({
    says: "the cloud takes a machine without a word",
    draw: ({ draw, nodes }) => ({ node: drawNode({ draw, nodes }) }),
    begin: (stage, { node }) => {
      const name = stage.machineName(node);
      if (stage.cluster.cloud.machine(name)?.state === "Running") stage.cluster.cloud.take(name);
      return undefined;
    },
  }),
};

type NoticeEnd = "Taken" | "Withdrawn" | "Kept";

function noticed(says: string, end: NoticeEnd): FaultKind {
  return faultKind({
    says,
    draw: ({ draw, nodes }) => ({
      node: drawNode({ draw, nodes }),
      leadSeconds: draw.pick(30, 120, 600),
    }),
    begin: (stage, { node, leadSeconds }) => {
      announce(stage, { name: stage.machineName(node), leadSeconds, end });
      return undefined;
    },
  });
}

function announce(
  stage: Stage,
  { name, leadSeconds, end }: { name: string; leadSeconds: number; end: NoticeEnd },
): void {
  const { cloud, kubelet } = stage.cluster;
  const machine = cloud.machine(name);
  if (machine?.state !== "Running") return;
  stage.agents.announce(name, leadSeconds * 1000);
  const ifSame = (act: () => void) => () => {
    if (cloud.machine(name)?.id === machine.id) act();
  };
  if (end === "Withdrawn") {
    stage.after(
      (leadSeconds * 1000) / 2,
      ifSame(() => stage.agents.withdraw(name)),
    );
  }
  if (end !== "Taken") return;
  const shutdownMs = Math.max(0, leadSeconds - 25) * 1000;
  stage.after(
    shutdownMs,
    ifSame(() => kubelet.shutDown(name, gkeShutdownGrace)),
  );
  stage.after(
    leadSeconds * 1000,
    ifSame(() => cloud.take(name)),
  );
}
