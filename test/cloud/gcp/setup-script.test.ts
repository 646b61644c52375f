import { spawnSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { type SetupChoice, setupScript, undoScript } from "../../../src/cloud/gcp/setup-script.ts";

const plain: SetupChoice = {
  project: "my-project-1",
  namespace: "lastcall",
  serviceAccount: "lastcall",
  role: "lastcall",
  release: "Recreate",

  preemptionPoll: false,
};
const whole: SetupChoice = {
  ...plain,
  role: "lastcall.shop",
  release: "DeleteInstance",
  preemptionPoll: true,
  googleServiceAccount: "lastcall-shop",
  cluster: { name: "main", location: "europe-west1" },
  kubeconfig: "/home/me/my kube/config",
  context: "it's mine",
};

const { cluster: _, ...unchecked } = whole;
const keyed: SetupChoice = { ...unchecked, keyFile: true };

describe("the script of setup gcp", () => {
  it.each([
    ["gcp-direct.sh", plain],
    ["gcp-service-account.sh", whole],
    ["gcp-key.sh", keyed],
  ])("is the reviewed %s", async (file, choice) => {
    await expect(setupScript(choice)).toMatchFileSnapshot(`../../golden/setup/${file}`);
  });

  it("is valid bash, whatever is chosen", () => {
    for (const release of ["Recreate", "Delete", "DeleteInstance", "None"] as const) {
      for (const choice of [plain, whole, keyed]) {
        for (const make of [setupScript, undoScript]) {
          const input = make({ ...choice, release });
          const { status, stderr } = spawnSync("bash", ["-n"], { input, encoding: "utf8" });
          expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
        }
      }
    }
  });

  it.each([
    [
      "Recreate",
      false,
      [
        "instanceGroupManagers.update",
        "instanceGroupManagers.get",
        "instanceGroupManagers.list",
        "zoneOperations.get",
      ],
    ],
    [
      "Delete",
      false,
      [
        "instanceGroupManagers.update",
        "instanceGroupManagers.get",
        "instanceGroupManagers.list",
        "zoneOperations.get",
      ],
    ],
    ["DeleteInstance", false, ["instances.delete", "zoneOperations.get"]],
    ["None", true, ["zoneOperations.list"]],
  ] as const)(
    "for %s (preemptions: %s) grants exactly what that needs",
    (release, preemptionPoll, more) => {
      const script = setupScript({ ...plain, release, preemptionPoll });
      const granted = /^permissions='(.*)'$/m.exec(script)?.[1]?.split(",");
      const wanted = ["instances.get", "instances.list", ...more].map((one) => `compute.${one}`);
      expect(granted).toEqual(wanted);
    },
  );

  it.each([
    ["project", "My_Project", "--project"],
    ["project", "x'; touch pwned; '", "--project"],
    ["project", "", "--project"],
    ["project", "my-project-1\n", "--project"],
    ["namespace", "Shop", "--namespace"],
    ["namespace", "a]/b", "--namespace"],
    ["serviceAccount", "a/b", "--service-account"],
    ["role", "no-dashes", "--role"],
    ["googleServiceAccount", "lastcall@p.iam.gserviceaccount.com", "--google-service-account"],
    ["context", "a\nb", "--context"],
    ["context", "a\u202eb", "--context"],
    ["kubeconfig", "a\u0000b", "--kubeconfig"],
  ])("rejects the %s %j", (field, value, flag) => {
    const make = () => setupScript({ ...plain, [field]: value });
    expect(make).toThrow(expect.objectContaining({ code: "USAGE" }));
    expect(make).toThrow(`Cannot use ${flag}: found ${JSON.stringify(value)}, expected `);
  });

  it.each(["name", "location"])("rejects a cluster with an invalid %s", (field) => {
    const cluster = { name: "main", location: "europe-west1", [field]: "$(id)" };
    expect(() => setupScript({ ...plain, cluster })).toThrow(/^Cannot use --(cluster|location): /);
  });
});
