import { join } from "node:path";
import { buildGo } from "../go-build.ts";

/** The newest crane that go.sum pins, built once. */
export function buildCrane(): string {
  const binary = "crane";
  const folder = join(import.meta.dirname, "crane");
  const module = {
    binary,
    package: "github.com/google/go-containerregistry/cmd/crane",
    folder,
    ldflags: "-s -w",
    remark: "under a minute",
  };
  return join(buildGo(binary, [module]), binary);
}
