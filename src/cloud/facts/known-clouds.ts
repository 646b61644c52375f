import { awsFacts } from "../aws/aws-facts.ts";
import { azureFacts } from "../azure/azure-facts.ts";
import { gcpFacts } from "../gcp/gcp-facts.ts";
import type { CloudFacts } from "./cloud-facts.ts";

/** One line a cloud, in the order in which sentences name them. */
const all = [gcpFacts, awsFacts, azureFacts] as const;

/** As in `--cloud`. */
export type CloudName = (typeof all)[number]["name"];

/** The facts of every cloud. */
export const knownClouds: readonly CloudFacts[] = all;
