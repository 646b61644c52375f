import { spawnSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import {
  type AzureSetupChoice,
  azureSetupScript,
  azureUndoScript,
} from "../../../src/cloud/azure/setup-script.ts";

const plain: AzureSetupChoice = {
  subscription: "1b2e6f80-0000-4000-8000-000000000000",
  resourceGroup: "shop",
  cluster: "main",
  managedIdentity: "lastcall",
  role: "lastcall",
  namespace: "lastcall",
  serviceAccount: "lastcall",
};
const whole = {
  ...plain,
  kubeconfig: "/my kube/config",
  context: "it's mine",
};

describe("the script of setup azure", () => {
  it.each([
    ["azure.sh", azureSetupScript(plain)],
    ["azure-undo.sh", azureUndoScript(plain)],
  ])("is the reviewed %s", async (file, script) => {
    await expect(script).toMatchFileSnapshot(`../../golden/setup/${file}`);
  });

  it("is valid bash, whatever is chosen", () => {
    for (const make of [azureSetupScript, azureUndoScript]) {
      for (const choice of [plain, whole]) {
        const run = spawnSync("bash", ["-n"], { input: make(choice), encoding: "utf8" });
        expect({ status: run.status, stderr: run.stderr }).toEqual({ status: 0, stderr: "" });
      }
    }
  });

  it.each([
    ["subscription", "my subscription", "--subscription"],
    ["subscription", "1b2e6f80-0000-4000-8000-00000000000", "--subscription"],
    ["resourceGroup", "shop.", "--resource-group"],
    ["resourceGroup", "shop/../other", "--resource-group"],
    ["resourceGroup", "$(id)", "--resource-group"],
    ["cluster", "main-", "--cluster"],
    ["cluster", 'a"b', "--cluster"],
    ["managedIdentity", "a", "--managed-identity"],
    ["role", 'a"b', "--role"],
    ["role", "-a", "--role"],
    ["namespace", "a]/b", "--namespace"],
    ["serviceAccount", "A", "--service-account"],
    ["kubeconfig", "a\u0000b", "--kubeconfig"],
  ])("rejects the %s %j", (field, value, flag) => {
    for (const make of [azureSetupScript, azureUndoScript]) {
      const run = () => make({ ...plain, [field]: value });
      expect(run).toThrow(expect.objectContaining({ code: "USAGE" }));
      expect(run).toThrow(`Cannot use ${flag}: found ${JSON.stringify(value)}, expected `);
    }
  });
});
