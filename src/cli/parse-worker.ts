import { parentPort } from "node:worker_threads";
import { parseManifests } from "./parse-manifests.ts";
import type { TextPart } from "./parse-many.ts";

/** The thread of `parse-many.ts`: a part of a text in, its documents out. */
parentPort?.on("message", (part: TextPart) => parentPort?.postMessage(parseManifests(part)));
