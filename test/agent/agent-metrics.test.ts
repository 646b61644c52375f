import { describe, expect, it } from "vitest";
import { AgentMetrics } from "../../src/agent/agent-status.ts";

describe("the agent's metrics", () => {
  it("are in Prometheus' text format, one block per name, with escaped labels", () => {
    const metrics = new AgentMetrics();
    metrics.count("lastcall_errors_total", { code: "A" });
    metrics.count("lastcall_notices_total", { cloud: "aws", kind: 'q"\\\n' });
    metrics.count("lastcall_errors_total", { code: "B" });
    metrics.count("lastcall_errors_total", { code: "A" });
    expect(metrics.exposition()).toBe(
      [
        "# TYPE lastcall_errors_total counter",
        'lastcall_errors_total{code="A"} 2',
        'lastcall_errors_total{code="B"} 1',
        "# TYPE lastcall_notices_total counter",
        'lastcall_notices_total{cloud="aws",kind="q\\"\\\\\\n"} 1',
        "",
      ].join("\n"),
    );
  });

  it("are empty before anything was counted", () => {
    expect(new AgentMetrics().exposition()).toBe("");
  });
});
