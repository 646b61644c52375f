import { awsFacts } from "../aws/aws-facts.ts";
import { azureFacts } from "../azure/azure-facts.ts";
import { gcpFacts } from "../gcp/gcp-facts.ts";
import type { CloudFacts, NoticeConditions } from "./cloud-facts.ts";

/** One line a cloud, in the order in which sentences name them. */
const all = [gcpFacts, awsFacts, azureFacts] as const;

/** As in `--cloud`. */
export type CloudName = (typeof all)[number]["name"];

/** The facts of every cloud. */
export const knownClouds: readonly CloudFacts[] = all;

/** The labels by which clouds and tools mark Spot nodes. */
export const spotLabels: CloudFacts["spotLabels"] = Object.assign(
  {},
  ...knownClouds.map((cloud) => cloud.spotLabels),
);

/** The conditions of a Node by which platforms announce its end. */
export const noticeConditions: readonly NoticeConditions[] = knownClouds.flatMap(
  (cloud) => cloud.noticeConditions ?? [],
);

/** How the providerIDs of machines begin. */
export const providerIdForms: readonly string[] = knownClouds.map(({ idForm }) => idForm);
