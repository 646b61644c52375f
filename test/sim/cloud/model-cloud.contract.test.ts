import { instanceReleaserContract } from "../../contract/instance-releaser.contract.ts";
import { launchTimesContract } from "../../contract/launch-times.contract.ts";
import { startModelCloudWorld } from "../../support/model-cloud-world.ts";

instanceReleaserContract("ModelCloud", startModelCloudWorld);
launchTimesContract("ModelCloud", startModelCloudWorld);
