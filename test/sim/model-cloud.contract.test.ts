import { instanceReleaserContract } from "../contract/instance-releaser.contract.ts";
import { startModelCloudWorld } from "../support/model-cloud-world.ts";

instanceReleaserContract("ModelCloud", startModelCloudWorld);
