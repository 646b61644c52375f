import type { FaultKind } from "./fault.ts";
import { actionFaults } from "./faults/action-faults.ts";
import { apiFaults } from "./faults/api-faults.ts";
import { cloudFaults } from "./faults/cloud-faults.ts";
import { listFaults } from "./faults/list-faults.ts";
import { nodeFaults } from "./faults/node-faults.ts";
import { peopleFaults } from "./faults/people-faults.ts";
import { processFaults } from "./faults/process-faults.ts";
import { rightFaults } from "./faults/right-faults.ts";
import { rivalFaults } from "./faults/rival-faults.ts";

/** Every kind of fault there is. A new one is a new row, and is drawn from then on. */
export const faultTable: Readonly<Record<string, FaultKind>> = {
  ...apiFaults,
  ...processFaults,
  ...nodeFaults,
  ...cloudFaults,
  ...peopleFaults,
  ...listFaults,
  ...rivalFaults,
  ...actionFaults,
  ...rightFaults,
};
