/**
 * Writes the generated files: CRDs, the chart, the reference pages and the demo's
 * picture. With `--check` it writes nothing and fails if a file differs.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { generateCrds } from "../src/config/schema/crd.ts";
import { generateChart } from "./chart.ts";
import { generateDemoPicture, readmeMoment } from "./demo-picture.ts";
import { generateAuditDocs } from "./docs/audit-docs.ts";
import { generateDoctorDocs } from "./docs/doctor-docs.ts";
import { generateOptionDocs } from "./docs/option-doc.ts";
import { generateResourceDocs } from "./docs/resource-doc.ts";
import { generateTelemetryDocs } from "./docs/telemetry-doc.ts";
import { generateVersionDocs } from "./docs/version-docs.ts";
import { report, root } from "./source-tree.ts";

const files = new Map([
  ...generateCrds(),
  ...generateChart(),
  ...generateResourceDocs(),
  ...generateOptionDocs(),
  ...generateAuditDocs(),
  ...generateDoctorDocs(),
  ...generateTelemetryDocs(),
  ...generateVersionDocs(),
  ...(await generateDemoPicture(readmeMoment)),
]);

function isCurrent([path, content]: [string, string]): boolean {
  const file = join(root, path);
  return existsSync(file) && readFileSync(file, "utf8") === content;
}

const stale = [...files].filter((file) => !isCurrent(file));
if (process.argv.includes("--check")) {
  const findings = stale.map(([path]) => `${path} is stale, run npm run generate`);
  process.exitCode = report("generate", findings);
} else {
  for (const [path, content] of stale) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), content);
    console.log(`wrote ${path}`);
  }
}
