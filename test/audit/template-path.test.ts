import { describe, expect, it } from "vitest";
import { parseTemplatePath } from "../../src/audit/objects/manifest.ts";
import { auditRun } from "./support/audit-run.ts";

describe("--template-path", () => {
  it.each([
    {
      text: "Sandbox.example.com=spec.podTemplate",
      wanted: { kind: "Sandbox", group: "example.com", path: ["spec", "podTemplate"] },
    },
    {
      text: "Sandbox=.spec.template",
      wanted: { kind: "Sandbox", group: undefined, path: ["spec", "template"] },
    },
  ])("accepts $text", ({ text, wanted }) => {
    expect(parseTemplatePath(text)).toEqual(wanted);
  });

  it.each(["", "Sandbox", "Sandbox=", "=spec", "sandbox=spec", "A.b=spec..x", "A.b=spec[0].c"])(
    "refuses %j",
    (text) => {
      expect(() => parseTemplatePath(text)).toThrow(
        `Cannot read --template-path ${text}: expected KIND.GROUP=PATH, such as Rollout.argoproj.io=spec.template`,
      );
    },
  );

  const sandbox = `apiVersion: example.com/v1
kind: Sandbox
metadata: {name: box}
spec:
  replicas: 3
  podTemplate:
    spec:
      containers: [{name: main, image: main}]
      terminationGracePeriodSeconds: GRACE
`;

  it("makes the audit judge a custom resource in a file", async () => {
    const run = await auditRun(
      {
        files: ["box.yaml"],
        platforms: ["gke"],
        output: "json",
        templatePaths: ["Sandbox.example.com=spec.podTemplate"],
      },
      { "box.yaml": sandbox.replace("GRACE", "60") },
    );

    expect(JSON.parse(run.stdout)).toMatchObject({
      workloads: [{ kind: "Sandbox", name: "box", wantedGraceSeconds: 60, cut: { gke: true } }],
      notJudged: [],
    });
    expect(run.exit).toBe(3);
  });

  it("names the line of an invalid grace", async () => {
    const run = await auditRun(
      { files: ["box.yaml"], templatePaths: ["Sandbox=spec.podTemplate"] },
      { "box.yaml": sandbox.replace("GRACE", "-1") },
    );

    expect(run.exit).toBe(2);
    expect(run.error).toContain("box.yaml:9 (Sandbox default/box)");
  });
});
