import type { Check } from "./check.ts";
import { cloudChecks } from "./checks/cloud-checks.ts";
import { clusterChecks } from "./checks/cluster-checks.ts";
import { controllerChecks } from "./checks/controller-checks.ts";
import { nodeChecks } from "./checks/node-checks.ts";
import { policyChecks } from "./checks/policy-checks.ts";

/** All checks, in the order of the report: what everything else hangs on comes first. */
export const checkList: readonly Check[] = [
  ...clusterChecks,
  ...controllerChecks,
  ...policyChecks,
  ...cloudChecks,
  ...nodeChecks,
];
