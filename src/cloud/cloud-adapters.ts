import type { CloudAdapters } from "../contracts/cloud-descriptor.ts";
import { awsAdapters } from "./aws/aws-adapters.ts";
import { azureAdapters } from "./azure/azure-adapters.ts";
import type { CloudName } from "./facts/known-clouds.ts";
import { gcpAdapters } from "./gcp/gcp-adapters.ts";

const byName = {
  gcp: gcpAdapters,
  aws: awsAdapters,
  azure: azureAdapters,
} satisfies Readonly<Record<CloudName, CloudAdapters>>;

type TypedAdapters = (typeof byName)[CloudName];

/** By the name of the cloud. */
export const cloudAdapters: Readonly<Record<string, TypedAdapters>> = byName;

type Together<Of> = (Of extends unknown ? (one: Of) => void : never) extends (
  all: infer All,
) => void
  ? All
  : never;

/** The options of a controller that the clouds read. */
export type AccessOptions = Together<Parameters<TypedAdapters["access"]>[0]>;
