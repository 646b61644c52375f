import { azureFaults, computeFaults, ec2Faults, joinAks, joinEc2 } from "./cloud-faults.ts";
import type { Fault, FaultPhase } from "./doctor-stage.ts";
import { emptyFaults, fleetFaults, leaderlessFaults } from "./fleet-faults.ts";
import { installationFaults } from "./installation-faults.ts";

/** In the order in which they are made: a fault that is not mended stays in later phases. */
export const faultPhases: readonly FaultPhase[] = [
  { title: "by what is wrong with the installation", faults: installationFaults },
  { title: "by what is wrong with policies and nodes", faults: fleetFaults },
  { title: "by what Compute Engine and SQS answer", faults: computeFaults },
  { title: "by what a controller would put right, once none leads", faults: leaderlessFaults },
  { title: "by what EC2 and Auto Scaling answer", prepare: joinEc2, faults: ec2Faults },
  { title: "by what Azure answers", prepare: joinAks, faults: azureFaults },
  { title: "where no Spot node is left", faults: emptyFaults },
];

/** The faults in the table of docs/doctor.md. */
export const doctorFaults: readonly Fault[] = faultPhases.flatMap(({ faults }) => faults);
