import { parentPort } from "node:worker_threads";
import { parseManifests } from "./parse-manifests.ts";
import type { TextPart } from "./parse-many.ts";

/** The thread of `parse-many.ts`: receives parts of texts and returns their documents. */
parentPort?.on("message", (batch: readonly TextPart[]) =>
  parentPort?.postMessage(batch.map((part) => parseManifests(part))),
);
