import { instanceReleaserContract } from "../../contract/instance-releaser.contract.ts";
import { launchTimesContract } from "../../contract/launch-times.contract.ts";
import { startEc2World } from "../../support/ec2-world.ts";

instanceReleaserContract("Ec2Releaser", startEc2World);
launchTimesContract("Ec2LaunchTimes", startEc2World);
