import { expect, it } from "vitest";
import { ClusterStory } from "./cluster-story.ts";

it("A daemon on a machine that shuts down is not made anew without end", async () => {
  const story = new ClusterStory();
  story.node("n1");
  story.daemonSet("log-shipper", { tolerations: [{ operator: "Exists" }] });
  await story.wait(10);
  expect(story.active("log-shipper")).toHaveLength(1);

  let made = 0;
  story.api.context.store.collection("pods").subscribe(({ type }) => {
    if (type === "ADDED") made += 1;
  });
  story.kubelet.shutDown("n1", { regularSeconds: 15, criticalSeconds: 15 });
  await story.wait(30);
  // It fails 1 s after the notice and is replaced at once, then after 1, 2, 4 and 8 s more.
  expect(made).toBe(5);
});
