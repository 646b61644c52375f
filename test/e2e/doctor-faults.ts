import { azureFaults, computeFaults, ec2Faults, joinAks, joinEc2 } from "./cloud-faults.ts";
import type { Fault, FaultPhase } from "./doctor-stage.ts";
import { emptyFaults, fleetFaults, leaderlessFaults } from "./fleet-faults.ts";
import { installationFaults } from "./installation-faults.ts";

/** In the order in which they are made: a fault that is not mended stays in later phases. */
export const faultPhases: readonly FaultPhase[] = [
  { title: "faults of the installation", faults: installationFaults },
  { title: "faults of policies and nodes", faults: fleetFaults },
  { title: "faults of Compute Engine and SQS", faults: computeFaults },
  { title: "faults that a leader would repair, once none leads", faults: leaderlessFaults },
  { title: "faults of EC2 and Auto Scaling", prepare: joinEc2, faults: ec2Faults },
  { title: "faults of Azure", prepare: joinAks, faults: azureFaults },
  { title: "a cluster without Spot nodes", faults: emptyFaults },
];

/** The faults in the table of docs/doctor.md. */
export const doctorFaults: readonly Fault[] = faultPhases.flatMap(({ faults }) => faults);
