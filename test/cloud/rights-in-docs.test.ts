import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { awsPermissions } from "../../src/cloud/aws/setup/permissions.ts";
import { readPermissionOf } from "../../src/cloud/azure/azure-machine.ts";
import { azurePermissions, scaleSetListPermission } from "../../src/cloud/azure/permissions.ts";
import { computePermissions } from "../../src/cloud/gcp/permissions.ts";

/** The cloud's permissions in the first column of a page's table. */
function documented(cloud: string, form: RegExp): readonly string[] {
  const page = readFileSync(`docs/cloud/${cloud}.md`, "utf8");
  const cells = page.split("\n").flatMap((line) => /^\| ([^|]*) \|/.exec(line)?.[1] ?? []);
  const found = cells.flatMap((cell) =>
    [...cell.matchAll(/`([^`]+)`/g)].map((match) => `${match[1]}`),
  );
  return [...new Set(found.filter((one) => form.test(one)))].sort();
}

const ofAzure = [...azurePermissions, scaleSetListPermission].map(({ action }) => action);
const ofGoogle = computePermissions.map(({ permission }) => permission);

it.each([
  ["aws", /^[a-z0-9]+:[A-Z]\w+$/, awsPermissions.map(({ action }) => action)],
  ["azure", /^Microsoft\./, ofAzure],
  ["gcp", /^compute\.\w+\.\w+$/, ofGoogle],
])("docs/cloud/%s.md lists exactly the permissions that the code lists", (cloud, form, listed) => {
  expect(documented(cloud, form)).toEqual([...listed].sort());
});

/**
 * The permissions that a cloud's calls name, since each call carries the one that it needs; a
 * ternary within a name counts for both.
 */
function named(cloud: string, start: string): readonly string[] {
  const folder = `src/cloud/${cloud}`;
  const files = readdirSync(folder).filter((file) => file !== "permissions.ts");
  const texts = files.map((file) => readFileSync(`${folder}/${file}`, "utf8"));
  const names = texts.flatMap((text) => {
    const plain = [...text.matchAll(new RegExp(`"(${start}\\.[\\w./]+)"`, "g"))];
    const either = new RegExp(
      `\`(${start}\\.)\\$\\{[^?]*\\? "(\\w*)" : "(\\w*)"\\}([\\w./]*)\``,
      "g",
    );
    return [
      ...plain.map(([, name = ""]) => name),
      ...[...text.matchAll(either)].flatMap(([, head, one, other, tail]) => [
        `${head}${one}${tail}`,
        `${head}${other}${tail}`,
      ]),
    ];
  });
  return [...new Set(names)];
}

// The test for AWS is in test/deploy/aws-iac.test.ts.
describe("the controller's permissions are those of the calls that the code can make", () => {
  it("on Compute Engine", () => {
    const noPermission = "compute.instances.preempted";
    const calls = named("gcp", "compute").filter((one) => one !== noPermission);
    expect(calls.sort()).toEqual([...ofGoogle].sort());
  });

  it("on Azure", () => {
    const machines = ["", "/virtualMachineScaleSets/s"].map((place) =>
      readPermissionOf({ collection: `/g${place}/virtualMachines` }),
    );
    // An operation's state is polled at an address that Azure returns.
    const operations = "Microsoft.ContainerService/locations/operations/read";
    const calls = [...named("azure", "Microsoft"), ...machines, operations];
    expect(calls.sort()).toEqual([...ofAzure].sort());
  });
});
