/** What the controller costs while nothing happens, with 1,000 nodes and 30,000 pods. */
import { benchIdleController } from "./idle-controller.ts";

await benchIdleController({ bench: "controller", nodes: 1000, podsPerNode: 30, goalMiB: 100 });
