import { instanceReleaserContract } from "../../contract/instance-releaser.contract.ts";
import { startComputeWorld } from "../../support/compute-world.ts";

instanceReleaserContract("ComputeReleaser", startComputeWorld);
