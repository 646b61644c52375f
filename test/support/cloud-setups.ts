import { makeFakeAws } from "./fake-aws.ts";
import { makeFakeAz } from "./fake-az.ts";
import { makeFakeGcloud } from "./fake-gcloud.ts";
import type { FakeTools } from "./fake-tools.ts";

/** A set-up by script, and the fake tools that it is run with. */
export interface CloudSetup {
  readonly name: string;
  readonly make: () => FakeTools;
  readonly options: Readonly<Record<string, unknown>> & { readonly cloud: string };
  /** What exists before the set-up, with its content. */
  readonly standing: Readonly<Record<string, string>>;
  /** What the cloud keeps after the removal: Google reserves the id of a deleted role. */
  readonly kept?: readonly string[];
}

const issuer = "https://issuer.example";
const aws = {
  ...{ cloud: "aws", account: "123456789012", region: "eu-west-1", cluster: "main" },
  ...{ serviceAccount: "lastcall", role: "lastcall", release: "Recreate", sqsCompleteHooks: true },
};
const onAws = { cluster: issuer, addon: "", provider: "", "service-account": "" };
const gcp = {
  ...{ cloud: "gcp", project: "my-project-1", serviceAccount: "lastcall", role: "lastcall" },
  release: "Recreate",
};
const inCluster = { cluster: "main", location: "europe-west1" };
const onGcp = { "service-account": "", "workload-pool": "", clusters: "europe-west1/main" };
const account = { googleServiceAccount: "lastcall-shop" };
const azure = {
  ...{ cloud: "azure", subscription: "1b2e6f80-0000-4000-8000-000000000000" },
  ...{ resourceGroup: "shop", cluster: "main", serviceAccount: "lastcall" },
  ...{ managedIdentity: "lastcall", role: "lastcall" },
};

const ofGoogle = { make: makeFakeGcloud, standing: onGcp, kept: ["role", "role-deleted"] };
export const cloudSetups: readonly CloudSetup[] = [
  {
    ...{ name: "aws with Pod Identity", make: makeFakeAws, standing: onAws },
    options: { ...aws, identity: "PodIdentity", queue: "q" },
  },
  {
    ...{ name: "aws with IRSA", make: makeFakeAws, standing: onAws },
    options: { ...aws, identity: "IRSA" },
  },
  { ...ofGoogle, name: "gcp", options: { ...gcp, ...inCluster } },
  { ...ofGoogle, name: "gcp with an account", options: { ...gcp, ...inCluster, ...account } },
  { ...ofGoogle, name: "gcp with a key", options: { ...gcp, ...account, keyFile: true } },
  {
    ...{ name: "azure", make: makeFakeAz, options: azure },
    standing: { "service-account": "", webhook: "", cluster: issuer },
  },
];
