import { crdOf } from "../../config/schema/crd.ts";
import { resourceDefinitions } from "../../config/schema/resource-definition.ts";
import { printYaml, readYaml } from "../../config/yaml-text.ts";
import type { KubeApi, KubeObject } from "../../contracts/kube-api.ts";
import { LastcallError } from "../../errors.ts";
import { connect } from "../cluster/connect.ts";
import { type CommandIo, printData } from "../command-line/command-io.ts";
import type { CommandRun } from "../command-line/command-spec.ts";

type Setup = Parameters<CommandRun<"setup">>[0];

/** Prints, or with `--apply` applies, what has to be there once. */
export const runSetup: CommandRun<"setup"> = async (input) => {
  const { runSetupCloud, setupClouds } = await import("./setup-cloud.ts");
  if (setupClouds.includes(input.words[0] ?? "")) return runSetupCloud(input);
  const objects = await setupObjects(input);
  // Printing, or worse applying, would be the opposite of what was asked for.
  if (input.options.undo) {
    const found = "--undo was given, expected it with gcp, aws or azure only";
    throw new LastcallError("USAGE", `Cannot set up ${input.words[0]}: ${found}`);
  }
  if (!input.options.apply) {
    await printAll(objects, input);
    return 0;
  }
  await applyAll(objects, input);
  return 0;
};

/** In each form for `kubectl apply -f -`. */
async function printAll(objects: readonly KubeObject[], { options, io }: Setup): Promise<void> {
  if (options.output === "json") {
    await printData({ apiVersion: "v1", kind: "List", items: objects }, "json", io);
    return;
  }
  io.out(objects.map(printYaml).join("---\n"));
}

async function setupObjects({ words, options, io }: Setup): Promise<readonly KubeObject[]> {
  const what = words[0];
  if (what === "crds") return resourceDefinitions.map((one) => crdOf(one) as KubeObject);
  if (what !== "admission") {
    throw new LastcallError(
      "USAGE",
      `Cannot set up ${JSON.stringify(what)}: unknown part, expected crds, admission, gcp, aws or azure`,
    );
  }
  const { admissionBudget, admissionManifests } = await import("../../audit/admission.ts");
  const { loadPlatform } = await import("../cluster/load-platform.ts");
  const { nodeFiles } = await import("../input/node-files.ts");
  const platform = await loadPlatform(options.platform, nodeFiles(io.files.stdinBytes()));
  const text = admissionManifests({
    ...admissionBudget(platform),
    action: options.action,
    scope: options.scope,
    namespace: options.namespace ?? "lastcall",
  });
  return readYaml(text).documents.map(({ value }) => value as KubeObject);
}

async function applyAll(objects: readonly KubeObject[], { options, io }: Setup): Promise<void> {
  const { api, close } = await connect({ ...options, signal: io.signal }, io);
  try {
    for (const object of objects) await apply(api, object, io);
  } finally {
    close();
  }
}

/** Server-side apply: the same command twice changes nothing the second time. */
async function apply(api: KubeApi, object: KubeObject, io: CommandIo): Promise<void> {
  const { apiError } = await import("../../kube/object/api-error.ts");
  const name = object.metadata?.name ?? "";
  const request = {
    method: "PATCH",
    path: pathOf(object),
    patchType: "application/apply-patch+yaml",
    query: { fieldManager: "lastcall-setup", force: "true" },
    body: object,
  } as const;
  const answer = await api.send(request);
  if (answer.status >= 300) throw apiError(request, answer);
  io.out(`${object.kind?.toLowerCase()}/${name} applied\n`);
}

/** The collections of the kinds that are set up here. */
const collections: Readonly<Record<string, string>> = {
  CustomResourceDefinition: "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
  ValidatingAdmissionPolicy: "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
  ValidatingAdmissionPolicyBinding:
    "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings",
};

function pathOf({ kind = "", metadata = {} }: KubeObject): string {
  const collection = collections[kind] ?? `/api/v1/namespaces/${metadata.namespace}/configmaps`;
  return `${collection}/${metadata.name}`;
}
