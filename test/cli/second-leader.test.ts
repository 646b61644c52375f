import { describe, expect, it, vi } from "vitest";
import { checkAlone } from "../../src/cli/commands/run.ts";
import type { KubeAnswer, KubeApi, KubeObject } from "../../src/contracts/kube-api.ts";
import { formatInstant, instant, minus, seconds } from "../../src/core/time/time.ts";
import { ManualClock } from "../support/manual-clock.ts";

const at = instant(Date.UTC(2026, 10, 28, 12));

function lease(
  namespace: string,
  { holder = "host-7", renewedSeconds = 3, name = "lastcall" } = {},
) {
  return {
    metadata: { name, namespace },
    spec: {
      holderIdentity: holder,
      leaseDurationSeconds: 40,
      renewTime: formatInstant(minus(at, seconds(renewedSeconds))),
    },
  };
}

/** Checks a controller in the namespace `lastcall`; returns its error and its warnings. */
async function start(
  leases: readonly KubeObject[],
  how: {
    status?: number;
    /** The statuses of the first answers. */
    first?: readonly number[];
    leaderElect?: boolean;
    env?: Record<string, string>;
    signal?: AbortSignal;
  } = {},
) {
  const clock = new ManualClock(at);
  const first = [...(how.first ?? [])];
  const asked: string[] = [];
  const warnings: unknown[] = [];
  const api: KubeApi = {
    send: async ({ path }): Promise<KubeAnswer> => {
      asked.push(path);
      if (path === "/version") return { status: 200, body: {}, serverAt: at };
      return { status: first.shift() ?? how.status ?? 200, body: { items: leases } };
    },
    watch: () => {
      throw new Error("nothing is watched");
    },
  };
  const checking = checkAlone({
    options: { leaderElect: how.leaderElect ?? true },
    io: { clock, env: how.env ?? {}, signal: how.signal ?? new AbortController().signal },
    api,
    home: "lastcall",
    log: { warn: (event, fields) => warnings.push([event, fields]) },
  }).catch(({ message }: Error) => message);
  if (how.first !== undefined || how.status !== undefined) {
    await vi.waitFor(() => expect(asked.length).toBeGreaterThan(1));
    await clock.advance(seconds(30));
  }
  const error = await checking;
  return { asked, error, warnings };
}

describe("a controller that a person starts", () => {
  it("refuses to lead beside the leader of another namespace, and names it", async () => {
    const { error } = await start([lease("default")]);
    expect(error).toBe(
      "Cannot lead in the namespace lastcall: host-7 leads in default and renewed its Lease 3 s ago, expected one leader in a cluster; run with -n default to stand by, or stop the other first",
    );
  });

  it.each([
    ["the leader is in the same namespace", [lease("lastcall")]],
    ["the other Lease has expired", [lease("default", { renewedSeconds: 40 })]],
    ["the other Lease was released", [lease("default", { holder: "" })]],
    ["the other Lease is another program's", [lease("default", { name: "karpenter" })]],
    ["there is none", []],
  ])("starts if %s", async (_, leases) => {
    expect(await start(leases)).toMatchObject({ error: undefined, warnings: [] });
  });

  it("starts if the person may not list Leases", async () => {
    expect(await start([], { status: 403 })).toMatchObject({ error: undefined });
  });

  it("waits out a short outage, and then finds the other leader", async () => {
    const { asked, error } = await start([lease("default")], { first: [503, 500, 429] });
    expect(error).toContain("host-7 leads in default");
    expect(asked.filter((path) => path.endsWith("/leases"))).toHaveLength(4);
  });

  it("does not start if nobody can tell for 20 s", async () => {
    const { error } = await start([lease("default")], { status: 500 });
    expect(error).toContain("Cannot list leases.coordination.k8s.io: the API server answered 500");
  });

  it("warns of every leader if it needs no Lease itself", async () => {
    const { error, warnings } = await start([lease("default"), lease("lastcall")], {
      leaderElect: false,
    });
    expect(error).toBeUndefined();
    expect(warnings).toEqual([
      ["another-leader", { namespace: "default", holder: "host-7" }],
      ["another-leader", { namespace: "lastcall", holder: "host-7" }],
    ]);
  });

  it("asks nothing in a pod, whose account may read its own Lease only", async () => {
    const { asked } = await start([lease("default")], { env: { POD_NAMESPACE: "lastcall" } });
    expect(asked).toEqual([]);
  });
});
