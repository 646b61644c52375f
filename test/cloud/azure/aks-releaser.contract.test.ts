import { instanceReleaserContract } from "../../contract/instance-releaser.contract.ts";
import { launchTimesContract } from "../../contract/launch-times.contract.ts";
import { startAzureWorld } from "../../support/azure-world.ts";

instanceReleaserContract("AksReleaser", startAzureWorld);
launchTimesContract("AzureLaunchTimes", startAzureWorld);
