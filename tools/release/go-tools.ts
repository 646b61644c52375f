import { join } from "node:path";
import { buildGo } from "../go-build.ts";

/** The newest crane that go.sum pins, built once. */
export function buildCrane(): string {
  return buildTool("crane", "github.com/google/go-containerregistry/cmd/crane");
}

/** What reads the workflows of GitHub as GitHub does; for a test. */
export function buildActionlint(): string {
  return buildTool("actionlint", "github.com/rhysd/actionlint/cmd/actionlint");
}

/** Of a module in the folder of its name. */
function buildTool(binary: string, path: string): string {
  const folder = join(import.meta.dirname, binary);
  const remark = "under a minute";
  const module = { binary, package: path, folder, ldflags: "-s -w", remark };
  return join(buildGo(binary, [module]), binary);
}
