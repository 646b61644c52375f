import { describe, expect, it } from "vitest";
import { explainHeld, type HeldPod } from "../../../src/core/drain/drain-step.ts";

const web = "The disruption budget web needs 2 healthy pods and has 2 currently";
const db = "The disruption budget db needs 3 healthy pods and has 3 currently";

function held(name: string, message: string, namespace = "shop"): HeldPod {
  const pod = { namespace, name, uid: `${namespace}-${name}` };
  return { pod, reason: "BudgetHolds", message, budgets: [] };
}

describe("what holds up a drain", () => {
  it("is nothing if no pod is held", () => {
    expect(explainHeld([])).toBeUndefined();
  });

  it.each<[string, readonly HeldPod[], string]>([
    ["one pod by its name and its budget's message", [held("web-0", web)], `shop/web-0: ${web}`],
    [
      "the pods of one budget together, with how many more there are",
      [held("web-0", web), held("web-1", web), held("web-2", web)],
      `shop/web-0: ${web}; and 2 more pods`,
    ],
    [
      "two budgets with the message of each",
      [held("web-0", web), held("web-1", web), held("db-0", db)],
      `shop/web-0: ${web}; shop/db-0: ${db}; and 1 more pod`,
    ],
    [
      "budgets with the same name in two namespaces separately",
      [held("web-0", web), held("web-0", web, "test")],
      `shop/web-0: ${web}; test/web-0: ${web}`,
    ],
    [
      "no more than two, however many budgets there are",
      [held("web-0", web), held("db-0", db), held("mq-0", "not now"), held("mq-1", "not now")],
      `shop/web-0: ${web}; shop/db-0: ${db}; and 2 more pods`,
    ],
    [
      "a message of the server without its full stop",
      [held("web-0", "It is still being processed by the server.")],
      "shop/web-0: It is still being processed by the server",
    ],
  ])("names %s", (_, pods, said) => {
    expect(explainHeld(pods)).toBe(said);
  });
});
