import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { awsPermissionsFor } from "../../src/cloud/aws/setup/permissions.ts";
import { handlerValuesSetup } from "../../src/migrate/handler-setup.ts";
import { translateHandler } from "../../src/migrate/termination-handler.ts";

/** What NTH's README grants to the role of its queue mode. */
const ofHandler = [
  ...["autoscaling:CompleteLifecycleAction", "autoscaling:DescribeAutoScalingInstances"],
  ...["autoscaling:DescribeTags", "ec2:DescribeInstances"],
  ...["sqs:DeleteMessage", "sqs:ReceiveMessage"],
];

function roleNotes(values: object): readonly string[] {
  const { notes } = translateHandler(handlerValuesSetup(values, "values.yaml"));
  return notes.filter((note) => note.includes("role"));
}

const permissionsIn = (text = "") => [...text.matchAll(/[a-z0-9]+:[A-Z]\w+/g)].map(([one]) => one);

describe("The note on the role of NTH's queue mode", () => {
  const queue = { enableSqsTerminationDraining: true, queueURL: "https://sqs.example/1/q" };

  test.each([
    ["with the check of the tag", {}, true],
    ["without it", { checkTagBeforeDraining: false }, false],
  ])("names what Lastcall needs in addition: %s", (_, values, managedTag) => {
    const uses = { queue: true, hooks: true, managedTag, statusPoll: false, actions: false };
    const needed = awsPermissionsFor({ ...uses, mode: "Recreate" }).map(({ action }) => action);
    const [note, ...others] = roleNotes({ ...queue, ...values });
    expect(permissionsIn(note).toSorted()).toEqual(
      needed.filter((action) => !ofHandler.includes(action)).toSorted(),
    );
    expect(others).toEqual([]);
  });

  test("separates what only the release of a machine needs", () => {
    const uses = { queue: true, hooks: true, managedTag: true, statusPoll: false, actions: false };
    const forNotices = awsPermissionsFor({ ...uses, mode: "None" }).map(({ action }) => action);
    const [note = ""] = roleNotes(queue);
    const [first, second] = note.split("; ");
    expect(permissionsIn(first).every((action) => forNotices.includes(action))).toBe(true);
    expect(permissionsIn(second)).not.toEqual([]);
    expect(permissionsIn(second).some((action) => forNotices.includes(action))).toBe(false);
  });

  test("names the same permissions as docs/migrate.md", async () => {
    const page = await readFile(join(import.meta.dirname, "../../docs/migrate.md"), "utf8");
    const [, section = ""] = page.split("### The AWS role");
    const [note] = roleNotes(queue);
    expect([...new Set(permissionsIn(section))].toSorted()).toEqual(permissionsIn(note).toSorted());
  });

  test("is not there without a queue, since agents need no role", () => {
    expect(roleNotes({})).toEqual([]);
  });
});
