import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { awsPermissions } from "../../src/cloud/aws/permissions.ts";
import { azurePermissions, scaleSetPermission } from "../../src/cloud/azure/setup-script.ts";
import { computePermissions } from "../../src/cloud/gcp/setup-script.ts";

/** What looks like a permission of the cloud, in the first column of a page's table of rights. */
function documented(cloud: string, form: RegExp): readonly string[] {
  const page = readFileSync(`docs/cloud/${cloud}.md`, "utf8");
  const cells = page.split("\n").flatMap((line) => /^\| ([^|]*) \|/.exec(line)?.[1] ?? []);
  const found = cells.flatMap((cell) =>
    [...cell.matchAll(/`([^`]+)`/g)].map((match) => `${match[1]}`),
  );
  return [...new Set(found.filter((one) => form.test(one)))].sort();
}

it.each([
  ["aws", /^[a-z0-9]+:[A-Z]\w+$/, awsPermissions.map(({ action }) => action)],
  ["azure", /^Microsoft\./, [...azurePermissions, scaleSetPermission].map(({ action }) => action)],
  ["gcp", /^compute\.\w+\.\w+$/, computePermissions.map(({ permission }) => permission)],
])(
  "docs/cloud/%s.md lists the permissions that the code has, and no others",
  (cloud, form, listed) => {
    expect(documented(cloud, form)).toEqual([...listed].sort());
  },
);
