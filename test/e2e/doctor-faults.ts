import { azureFaults, computeFaults, ec2Faults, joinAks, joinEc2 } from "./cloud-faults.ts";
import type { Fault, FaultPhase } from "./doctor-stage.ts";
import { emptyFaults, fleetFaults, leaderlessFaults } from "./fleet-faults.ts";
import { installationFaults } from "./installation-faults.ts";

/** In the order in which they are made: what is not mended stands in the phases after it. */
export const faultPhases: readonly FaultPhase[] = [
  { title: "by what is wrong with the installation", faults: installationFaults },
  { title: "by what is wrong with policies and nodes", faults: fleetFaults },
  { title: "by what Compute Engine and SQS answer", faults: computeFaults },
  { title: "by what a controller would put right, once none leads", faults: leaderlessFaults },
  { title: "by what EC2 and Auto Scaling answer", prepare: joinEc2, faults: ec2Faults },
  { title: "by what Azure answers", prepare: joinAks, faults: azureFaults },
  { title: "where no Spot node is left", faults: emptyFaults },
];

/** Of which the table in docs/doctor.md is made. */
export const doctorFaults: readonly Fault[] = faultPhases.flatMap(({ faults }) => faults);
