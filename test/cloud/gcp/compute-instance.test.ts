import { describe, expect, it } from "vitest";
import { instanceRefOf, namesOf, readInstance } from "../../../src/cloud/gcp/compute-instance.ts";

describe("a providerID", () => {
  it.each([
    ["gce://p/us-central1-a/n1", { project: "p", zone: "us-central1-a", name: "n1" }],
    [
      "gce://example.com:p-1/z/gke-c-pool-f7607aac-9j4g",
      { project: "example.com:p-1", zone: "z", name: "gke-c-pool-f7607aac-9j4g" },
    ],
  ])("%s names an instance", (providerID, ref) => {
    expect(instanceRefOf(providerID)).toEqual(ref);
  });

  it.each([
    "",
    "n1",
    "aws:///eu-west-1a/i-0abc",
    "gce://p/z",
    "gce://p/z/..",
    "gce://../z/n1",
    "gce://p/../n1",
    "gce://p/z/n1?alt=json",
    "gce://p/z/n1#x",
    "gce://p/z/n%2F1",
    "gce://p/z/N1",
  ])("%j is rejected", (providerID) => {
    expect(() => instanceRefOf(providerID)).toThrow("expected gce://project/zone/instance");
  });
});

describe("an instance", () => {
  it.each([
    ["PROVISIONING", "Running"],
    ["STAGING", "Running"],
    ["RUNNING", "Running"],
    ["REPAIRING", "Running"],
    ["SUSPENDING", "Running"],
    ["SUSPENDED", "Running"],
    ["A_WORD_OF_2030", "Running"],
    ["PENDING_STOP", "Leaving"],
    ["STOPPING", "Leaving"],
    ["DEPROVISIONING", "Leaving"],
    ["STOPPED", "Stopped"],
    ["TERMINATED", "Stopped"],
  ])("with the status %s has the stage %s", (status, stage) => {
    expect(readInstance({ id: "1", status })?.stage).toBe(stage);
  });

  it("has its last start as launch time, or its creation if it has not started", () => {
    const creationTimestamp = "2019-03-27T21:12:30.713-07:00";
    const lastStartTimestamp = "2019-03-28T21:12:30.000-07:00";
    const made = { id: "1", status: "STAGING", creationTimestamp };
    expect(readInstance(made)?.bornAt).toBe(Date.UTC(2019, 2, 28, 4, 12, 30, 713));
    const started = { ...made, lastStartTimestamp };
    expect(readInstance(started)?.bornAt).toBe(Date.UTC(2019, 2, 29, 4, 12, 30));
  });

  it("is known by its name, and by a host name that was chosen for it", () => {
    const ref = { project: "p", zone: "z", name: "n1" };
    const named = (hostname?: string) =>
      namesOf(ref, readInstance({ id: "1", status: "RUNNING", hostname }) ?? expect.unreachable());
    expect(named()).toEqual({ hosts: ["n1"] });
    expect(named("worker-3.example.com")).toEqual({ hosts: ["n1", "worker-3.example.com"] });
  });

  it.each([{}, { id: 1, status: "RUNNING" }, { id: "", status: "RUNNING" }, { id: "1" }])(
    "is not read without an ID and a status: %j",
    (body) => {
      expect(readInstance(body)).toBeUndefined();
    },
  );
});

describe("the group of an instance", () => {
  function groupFrom(value: unknown) {
    const metadata = {
      items: [
        { key: "cluster-name", value: "c" },
        { key: "created-by", value },
      ],
    };
    return readInstance({ id: "1", status: "RUNNING", metadata })?.group;
  }

  it.each([
    [
      "projects/601/zones/us-central1-a/instanceGroupManagers/gke-grp",
      { scope: "zones", location: "us-central1-a", name: "gke-grp" },
    ],
    [
      "projects/601/regions/us-central1/instanceGroupManagers/grp",
      { scope: "regions", location: "us-central1", name: "grp" },
    ],
    [
      "https://www.googleapis.com/compute/v1/projects/p/zones/z/instanceGroupManagers/g",
      { scope: "zones", location: "z", name: "g" },
    ],
  ])("is read from %s", (value, group) => {
    expect(groupFrom(value)).toEqual(group);
  });

  it.each([
    undefined,
    7,
    "",
    "projects/601/zones/z/instanceGroups/g",
    "projects/601/zones/z/instanceGroupManagers/..",
    "projects/601/zones/../instanceGroupManagers/g",
  ])("is unknown if created-by is %j", (value) => {
    expect(groupFrom(value)).toBeUndefined();
  });

  it.each([undefined, {}, { items: "text" }, { items: [null, "text"] }])(
    "is unknown if the metadata is %j",
    (metadata) => {
      const instance = readInstance({ id: "1", status: "RUNNING", metadata });
      expect(instance?.group).toBeUndefined();
    },
  );
});
