import { instanceReleaserContract } from "../contract/instance-releaser.contract.ts";
import { machineBirthsContract } from "../contract/machine-births.contract.ts";
import { startModelCloudWorld } from "../support/model-cloud-world.ts";

instanceReleaserContract("ModelCloud", startModelCloudWorld);
machineBirthsContract("ModelCloud", startModelCloudWorld);
