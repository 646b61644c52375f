import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { parse } from "yaml";
import { crdOf } from "../../../src/config/schema/crd.ts";
import { resourceDefinitions } from "../../../src/config/schema/resource-definition.ts";
import { instant } from "../../../src/core/time/time.ts";
import { eventLoopTurn } from "../../../src/runtime/real-clock.ts";
import { startDemoWorld } from "../../../src/sim/demo/demo-world.ts";
import { VirtualClock } from "../../../src/sim/time/virtual-clock.ts";

const manifest = join(import.meta.dirname, "../../../deploy/base/placeholder-priority.yaml");

it("the demo's world has the PriorityClass of deploy/base for placeholders", () => {
  const clock = new VirtualClock({ startAt: instant(0), settle: eventLoopTurn });
  const definitions = resourceDefinitions.map(crdOf);
  const { api } = startDemoWorld({ clock, seed: 1, nodes: 3, definitions });
  const path = "/apis/scheduling.k8s.io/v1/priorityclasses/lastcall-placeholder";
  const { metadata, ...installed } = parse(readFileSync(manifest, "utf8"));
  expect(api.handle({ method: "GET", path }).body).toMatchObject({
    ...installed,
    metadata: { name: metadata.name },
  });
});
