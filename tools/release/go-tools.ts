import { join } from "node:path";
import { buildGo } from "../go-build.ts";

/** The crane that go.sum pins, built once. */
export function buildCrane(): string {
  return buildTool("crane", "github.com/google/go-containerregistry/cmd/crane");
}

/** actionlint, which checks GitHub workflows; for a test. */
export function buildActionlint(): string {
  return buildTool("actionlint", "github.com/rhysd/actionlint/cmd/actionlint");
}

/** Builds a tool of the module in the folder of the same name. */
function buildTool(binary: string, path: string): string {
  const folder = join(import.meta.dirname, binary);
  const remark = "under a minute";
  const module = { binary, package: path, folder, ldflags: "-s -w", remark };
  return join(buildGo(binary, [module]), binary);
}
