import { didYouMean } from "../../config/problem.ts";
import { crdOf } from "../../config/schema/crd.ts";
import { resourceDefinitions } from "../../config/schema/resource-definition.ts";
import { printYaml, readYaml } from "../../config/yaml-text.ts";
import type { KubeApi, KubeObject } from "../../contracts/kube-api.ts";
import type { ReleaseMode } from "../../core/policy/policy.ts";
import { LastcallError } from "../../errors.ts";
import { runScript } from "../../runtime/child-process.ts";
import { connect } from "../cluster/connect.ts";
import {
  type CommandInput,
  type CommandIo,
  type CommandRun,
  printData,
} from "../command-line/command.ts";

type Setup = Parameters<CommandRun<"setup">>[0];

/** Prints, or with `--apply` applies, what has to be installed once. */
export const runSetup: CommandRun<"setup"> = async (input) => {
  const { runSetupCloud, setupClouds } = await import("./setup.ts");
  if (setupClouds.includes(input.words[0] ?? "")) return runSetupCloud(input);
  const objects = await setupObjects(input);
  // Printing, or worse applying, would be the opposite of what was requested.
  if (input.options.undo) {
    const found = "--undo was given, expected it only with gcp, aws or azure";
    throw new LastcallError("USAGE", `Cannot set up ${input.words[0]}: ${found}`);
  }
  if (!input.options.apply) {
    await printAll(objects, input);
    return 0;
  }
  await applyAll(objects, input);
  return 0;
};

/** Prints input for `kubectl apply -f -` in every format. */
async function printAll(objects: readonly KubeObject[], { options, io }: Setup): Promise<void> {
  if (options.output === "json") {
    await printData({ apiVersion: "v1", kind: "List", items: objects }, "json", io);
    return;
  }
  io.out(objects.map(printYaml).join("---\n"));
}

const parts = ["crds", "admission", "gcp", "aws", "azure"];
const partOfCluster: Readonly<Record<string, string>> = { gke: "gcp", eks: "aws", aks: "azure" };

function partHint(word = ""): string {
  const meant = partOfCluster[word.toLowerCase()] ?? didYouMean(word, parts);
  return meant === undefined ? "" : ` (did you mean ${meant}?)`;
}

async function setupObjects({ words, options, io }: Setup): Promise<readonly KubeObject[]> {
  const what = words[0];
  if (what === "crds") return resourceDefinitions.map((one) => crdOf(one) as KubeObject);
  if (what !== "admission") {
    throw new LastcallError(
      "USAGE",
      `Cannot set up ${JSON.stringify(what)}: unknown part${partHint(what)}, expected crds, admission, gcp, aws or azure`,
    );
  }
  const { admissionBudget, admissionManifests } = await import("../../audit/admission.ts");
  const { loadPlatform } = await import("../../audit/input/read-manifests.ts");
  const { nodeFiles } = await import("../input/read-objects.ts");
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

/** Server-side apply, so a second run of the same command changes nothing. */
async function apply(api: KubeApi, object: KubeObject, io: CommandIo): Promise<void> {
  const { apiError } = await import("../../kube/object/api-call.ts");
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

/** The API collections of the kinds that are installed here. */
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

type SetupOptions = CommandInput<"setup">["options"];
type ScriptOf = (options: SetupOptions) => Promise<string>;

/**
 * By the argument of `setup`: the script that grants the controller its permissions in a cloud, or
 * revokes them.
 */
const scripts: Readonly<Record<string, ScriptOf>> = {
  gcp: gcpScript,
  aws: awsScript,
  azure: azureScript,
};

export const setupClouds = Object.keys(scripts);

/** Prints the script of a cloud, or runs it with bash. */
export const runSetupCloud: CommandRun<"setup"> = async ({ words, options, io }) => {
  const cloud = words[0] ?? "";
  const script = await (scripts[cloud] as ScriptOf)(options);
  if (!options.apply) {
    io.out(script);
    return 0;
  }
  const end = await runScript(script, io);
  if (end === "Ended") return 0;
  const why =
    "notRun" in end
      ? `bash could not be started (${end.notRun}) and nothing was done, expected bash on the PATH; without --apply the script is printed`
      : `the script ended with ${end.endedBy}, see its last lines above`;
  throw new LastcallError("SCRIPT_FAILED", `Cannot set up ${cloud}: ${why}`);
};

async function gcpScript(options: SetupOptions): Promise<string> {
  const { setupScript, undoScript } = await import("../../cloud/gcp/setup-script.ts");
  const { cluster, location } = options;
  const project = wanted("gcp", "--project", options.project);
  if ((cluster === undefined) !== (location === undefined)) {
    const [given, lacking] =
      cluster === undefined ? ["--location", "--cluster"] : ["--cluster", "--location"];
    throw missing("gcp", `${given} needs ${lacking}, set both or neither`);
  }
  if (options.keyFile && (options.googleServiceAccount === undefined || cluster !== undefined)) {
    const what = "--key-file needs --google-service-account, whose key it creates";
    throw missing("gcp", `${what}, and no --cluster, which is for Workload Identity`);
  }
  const make = options.undo ? undoScript : setupScript;
  return make({
    ...options,
    project,
    namespace: options.namespace ?? "lastcall",
    preemptionPoll: options.gcpPreemptionPoll !== undefined,
    cluster: cluster && location ? { name: cluster, location } : undefined,
  });
}

async function awsScript(options: SetupOptions): Promise<string> {
  const { awsSetupScript, awsUndoScript } = await import("../../cloud/aws/setup/setup-script.ts");
  const make = options.undo ? awsUndoScript : awsSetupScript;
  if (options.awsManagedTag !== undefined) {
    const { parseManagedTag } = await import("../../cloud/aws/ec2-machine.ts");
    parseManagedTag(options.awsManagedTag);
  }
  return make({
    ...options,
    mode: options.release as ReleaseMode,
    account: wanted("aws", "--account", options.account),
    region: wanted("aws", "--region", options.region),
    cluster: wanted("aws", "--cluster", options.cluster),
    namespace: options.namespace ?? "lastcall",
    hooks: options.sqsCompleteHooks,
    statusPoll: options.ec2StatusPoll !== undefined,
    managedTag: options.awsManagedTag !== undefined,
    actions: options.awsActions,
  });
}

async function azureScript(options: SetupOptions): Promise<string> {
  const { azureSetupScript, azureUndoScript } = await import("../../cloud/azure/setup-script.ts");
  const make = options.undo ? azureUndoScript : azureSetupScript;
  return make({
    ...options,
    subscription: wanted("azure", "--subscription", options.subscription),
    resourceGroup: wanted("azure", "--resource-group", options.resourceGroup),
    cluster: wanted("azure", "--cluster", options.cluster),
    namespace: options.namespace ?? "lastcall",
  });
}

/** What each flag required by a cloud has to name. */
const meanings: Readonly<Record<string, string>> = {
  "--project": "the project whose machines are released",
  "--cluster": "the cluster whose machines are released",
  "--account": "the account that the cluster is in",
  "--region": "the region that the cluster is in",
  "--subscription": "the subscription that the cluster is in",
  "--resource-group": "the resource group of the cluster itself",
};

function wanted(cloud: string, flag: string, value: string | undefined): string {
  if (value === undefined) {
    throw missing(cloud, `${flag} is required, set it to ${meanings[flag]}`);
  }
  return value;
}

function missing(cloud: string, what: string): LastcallError {
  return new LastcallError("USAGE", `Cannot set up ${cloud}: ${what}`);
}
