import { describe, expect, it, vi } from "vitest";
import { mayReach } from "../../src/actions/action-hosts.ts";
import { isSpot } from "../../src/audit/objects/audit-node.ts";
import { assumedPlatforms } from "../../src/audit/platform.ts";
import { boardRows } from "../../src/board/board-row.ts";
import { cloudPorts } from "../../src/cli/assemble/controller-ports.ts";
import type { CommandIo } from "../../src/cli/command-line/command.ts";
import { commandList } from "../../src/cli/command-line/command-list.ts";
import { runAgent } from "../../src/cli/commands/agent.ts";
import { runSetup } from "../../src/cli/commands/setup.ts";
import { resolveOptions } from "../../src/config/options/resolve-options.ts";
import { isKnownProviderId, rivalOf, zoneInProviderId } from "../../src/core/cluster/node.ts";
import { noticeOfNode } from "../../src/core/notice/node-notice.ts";
import { planFleet } from "../../src/core/plan/plan.ts";
import { selectPolicy } from "../../src/core/policy/policy.ts";
import { explain } from "../../src/core/reason/reason.ts";
import { checkList } from "../../src/doctor/report.ts";
import type { LastcallError } from "../../src/errors.ts";
import { translateNode } from "../../src/kube/object/translate-node.ts";
import { realClock } from "../../src/runtime/real-clock.ts";
import { aNode, aPolicy, at } from "../core/fleet-builder.ts";
import { launchedAt, released } from "../support/fourth-cloud.ts";

/** The three lists with one more cloud in each; nothing else knows of it. */
vi.mock("../../src/cloud/facts/known-clouds.ts", async (actual) => {
  const { nimbusFacts } = await import("../support/fourth-cloud.ts");
  const { knownClouds } = await actual<typeof import("../../src/cloud/facts/known-clouds.ts")>();
  return { knownClouds: [...knownClouds, nimbusFacts] };
});
vi.mock("../../src/cloud/clouds.ts", async (actual) => {
  const { nimbus } = await import("../support/fourth-cloud.ts");
  const { clouds } = await actual<typeof import("../../src/cloud/clouds.ts")>();
  return { clouds: [...clouds, nimbus], typedClouds: [...clouds, nimbus] };
});
vi.mock("../../src/cloud/cloud-adapters.ts", async (actual) => {
  const { nimbusAdapters } = await import("../support/fourth-cloud.ts");
  const real = await actual<typeof import("../../src/cloud/cloud-adapters.ts")>();
  return { cloudAdapters: { ...real.cloudAdapters, nimbus: nimbusAdapters } };
});

const providerID = "nimbus://north/n1";
const labels = { "nimbus.example/price": "spot", "nimbus.example/pool": "blue" };
const node = aNode("n1", { providerID, labels, createdAt: launchedAt });
const policies = [aPolicy()];
const never = new AbortController().signal;

describe("a cloud that consists of its descriptors", () => {
  it("has its nodes recognized, by the default selector and by the audit", () => {
    expect(selectPolicy(node, policies)?.policy.name).toBe("spot");
    expect([isKnownProviderId(providerID), zoneInProviderId(node)]).toEqual([true, "north"]);
    expect(isSpot(labels)).toBe(true);
    expect(assumedPlatforms().at(-1)).toMatchObject({ name: "nks", assumedCloud: "nks" });
  });

  it("has its nodes planned, shown on the board, and left to its own tools", () => {
    const plan = planFleet({
      policies,
      badPolicies: [],
      nodes: [node],
      departures: [],
      at: launchedAt,
    });
    // 24 h after the launch, less 30 min.
    expect(plan.policies[0]?.departures).toMatchObject([
      { departAt: at("2026-11-20T23:30:00Z"), reason: "Spaced" },
    ]);
    const view = { nodes: [node], policies, departures: [] } as unknown as Parameters<
      typeof boardRows
    >[0];
    expect(boardRows(view, plan)).toMatchObject([{ pool: "blue" }]);
    const taints = [{ key: "nimbus.example/reaping", effect: "NoSchedule" }] as const;
    expect(rivalOf({ ...node, taints })).toBe("Nimbus reaper");
    expect(explain("UnknownProvider", { detail: "x" })).toContain("azure:/// or nimbus://");
  });

  it("gives notice by a condition of the Node", () => {
    const conditions = [
      { type: "Ready", status: "True" },
      { type: "NimbusReclaim", status: "True", reason: "Reclaim", message: "soon" },
    ];
    const noticed = translateNode({ metadata: { name: "n1" }, status: { conditions } });
    expect(noticeOfNode(noticed, launchedAt)).toMatchObject({
      cause: "SpotInterruption",
      source: "node/NimbusReclaim",
    });
  });

  it("gives notice to an agent that finds it by itself", async () => {
    const ending = new AbortController();
    let log = "";
    const io = {
      err: (text: string) => {
        log += text;
        if (log.includes('"event":"dry-run"')) ending.abort();
      },
      env: { KUBERNETES_SERVICE_HOST: "127.0.0.1", KUBERNETES_SERVICE_PORT: "9" },
      fetch: (async (url: string) =>
        url === "http://169.254.169.254/nimbus/id"
          ? new Response("nimbus")
          : new Response("", { status: 404 })) as unknown as typeof fetch,
      ...{ clock: realClock, rng: () => 0.5, signal: ending.signal },
    };
    const flags = {
      ...{ nodeName: "n1", dryRun: true },
      ...{ healthAddress: "127.0.0.1:0", metricsAddress: "127.0.0.1:0" },
    };
    const options = resolveOptions("agent", { flags, env: {} });
    expect(await runAgent({ options, io } as unknown as Parameters<typeof runAgent>[0])).toBe(0);
    expect(log).toMatch(/dry-run.*SpotInterruption/);
    expect(resolveOptions("agent", { flags: { ...flags, cloud: "nimbus" }, env: {} }).cloud).toBe(
      "nimbus",
    );
  });

  it("has its machines released, with its own options", async () => {
    const flags = { nimbusToken: "t" };
    const options = resolveOptions("run", { flags, env: {} });
    const io = { env: {}, fetch, rng: () => 0.5, clock: realClock } as unknown as CommandIo;
    const { releaserFor, launchTimes } = await cloudPorts(options, io);
    const releaser = releaserFor({ providerID, mode: "Recreate" });
    type Order = Parameters<NonNullable<typeof releaser>["release"]>[0];
    await releaser?.release({ providerID } as Order, never);
    expect(released).toEqual(["nimbus://north/n1 with t"]);
    const times = await launchTimes.launchTimesOf([providerID], never);
    expect(times.bornAt).toEqual(new Map([[providerID, launchedAt]]));
    const to = { host: "actions.example", port: 443 };
    expect(mayReach([{ host: to.host }], { ...to, address: "203.0.113.7" })).toBe(false);
  });

  it("is set up by its own script, and named wherever clouds are", async () => {
    let out = "";
    const run = (word: string, flags: object) => {
      const options = resolveOptions("setup", { flags: flags as Record<string, string>, env: {} });
      const io = {
        out: (text: string) => {
          out += text;
        },
      } as unknown as CommandIo;
      return runSetup({ words: [word], options, io } as unknown as Parameters<typeof runSetup>[0]);
    };
    expect(await run("nimbus", { tenant: "t1" })).toBe(0);
    expect(out).toBe("nimbus grant t1\n");
    const refused = await run("nks", {}).catch((error: unknown) => error as LastcallError);
    expect(refused).toMatchObject({ message: expect.stringContaining("did you mean nimbus?") });
    const setup = commandList.find(({ name }) => name === "setup");
    expect(setup?.words).toBe("crds|admission|gcp|aws|azure|nimbus");
    expect(setup?.examples).toContain("lastcall setup nimbus --tenant t1");
    const looks = checkList.map(({ fix, looksAt }) => `${fix} ${looksAt}`).join("\n");
    expect(looks).toContain("lastcall setup gcp|aws|azure|nimbus");
    expect(looks).toContain("on GKE and NKS also whether a ResourceQuota");
  });
});
