/** What the controller costs while nothing happens, with 5,000 nodes and 150,000 pods. */
import { benchIdleController } from "./idle-controller.ts";

await benchIdleController({
  bench: "large-controller",
  ...{ nodes: 5000, podsPerNode: 30, goalMiB: 200 },
});
