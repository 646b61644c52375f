import type { Cloud } from "../contracts/cloud-descriptor.ts";
import { aws } from "./aws/aws.ts";
import { azure } from "./azure/azure.ts";
import type { CloudName } from "./facts/known-clouds.ts";
import { gcp } from "./gcp/gcp.ts";

/**
 * Every cloud, in the order of `knownClouds`. A cloud whose facts are known there and that is
 * missing here does not compile.
 */
const byName = { gcp, aws, azure } as const satisfies Readonly<Record<CloudName, Cloud>>;

/** Those who pass options to a cloud need their types: all of them accept those of the command. */
export const typedClouds = Object.values(byName);

export const clouds: readonly Cloud[] = typedClouds;
