import { describe, expect, it } from "vitest";
import { next } from "../../src/core/next/next.ts";
import type { DepartureRequest } from "../../src/core/next/request.ts";
import { isLongRun } from "../support/long-run.ts";
import { budgetSpace } from "./budget-space.ts";
import { explore } from "./state-space.ts";

describe("every order of events in two departures that meet at a budget", () => {
  it.each([{ kills: 0 }, ...(isLongRun ? [{ kills: 1 }] : [])])(
    "keeps the rules: $kills kills",
    { timeout: 300_000 },
    (limits) => {
      const { states, transitions, ends, found } = explore(budgetSpace(limits));
      console.log(`${states} states, ${transitions} transitions, ${ends} ends`);
      expect(found).toBeUndefined();
      expect(ends).toBeGreaterThan(0);
    },
  );

  it("shows the shortest way to a broken budget, if pods are deleted", () => {
    const { found } = explore(
      budgetSpace({
        kills: 0,
        next: (...args) => {
          const out = next(...args);
          return { ...out, requests: out.requests.map(deleting) };
        },
      }),
    );
    expect(found).toEqual({
      rule: "a pod leaves that its budget needs",
      path: ["Delete p0 arrives: Accepted", "Delete p1 arrives: Accepted"],
    });
  });

  it("shows the shortest way to a pod that waits in vain, if a refusal is not asked again", () => {
    const { found } = explore(
      budgetSpace({
        kills: 0,
        next: (...args) => {
          const out = next(...args);
          const isFirst = ({ kind, key }: DepartureRequest) => kind !== "Pod" || key.endsWith(" 1");
          return { ...out, requests: out.requests.filter(isFirst) };
        },
      }),
    );
    expect(found?.rule).toBe("a drain is given up although its budget lets the pod go");
    expect(found?.path).toContain("Evict p1 arrives: Blocked");
  });
});

function deleting(request: DepartureRequest): DepartureRequest {
  if (request.kind !== "Pod") return request;
  const { pod } = request.act;
  return { ...request, act: { kind: "Delete", pod, graceSeconds: 5, reason: "DeleteRule" } };
}
