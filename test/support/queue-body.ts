/**
 * Bodies of queue messages, in the form of AWS's own examples: EventBridge "Events from AWS
 * services" and the EC2, Auto Scaling and Health user guides.
 */
export interface EventOf {
  readonly instanceId: string;
  /** RFC 3339 in whole seconds, as EventBridge writes it. */
  readonly time: string;
  readonly id?: string | undefined;
  /** Identifies a single wait of a lifecycle hook. */
  readonly token?: string | undefined;
}

interface Kind {
  readonly source: string;
  readonly type: string;
  readonly detail: object;
}

const defaultToken = "87654321-4321-4321-4321-210987654321";

function event({ instanceId, time, id }: EventOf, { source, type, detail }: Kind): object {
  return {
    version: "0",
    id: id ?? "12345678-1234-1234-1234-123456789012",
    "detail-type": type,
    source,
    account: "123456789012",
    time,
    region: "us-east-2",
    // AWS's example has the zone instead of the region, and no account.
    resources: [`arn:aws:ec2:us-east-2a:instance/${instanceId}`],
    detail,
  };
}

export function spotWarning(about: EventOf, action = "terminate"): object {
  const detail = { "instance-id": about.instanceId, "instance-action": action };
  const type = "EC2 Spot Instance Interruption Warning";
  return event(about, { source: "aws.ec2", type, detail });
}

export function reservationWarning(about: EventOf, terminationTime: string): object {
  const detail = {
    "instance-id": about.instanceId,
    "instance-action": "terminate",
    "instance-termination-time": terminationTime,
    azId: "use2-az1",
  };
  const type = "EC2 Capacity Reservation Instance Interruption Warning";
  return event(about, { source: "aws.ec2", type, detail });
}

export function rebalance(about: EventOf): object {
  const detail = { "instance-id": about.instanceId };
  const type = "EC2 Instance Rebalance Recommendation";
  return event(about, { source: "aws.ec2", type, detail });
}

export function stateChange(about: EventOf, state: string): object {
  const detail = { "instance-id": about.instanceId, state };
  const type = "EC2 Instance State-change Notification";
  return event(about, { source: "aws.ec2", type, detail });
}

function hookDetail({ instanceId, token }: EventOf, transition: string): object {
  return {
    LifecycleActionToken: token ?? defaultToken,
    AutoScalingGroupName: "spot-asg",
    LifecycleHookName: "drain",
    EC2InstanceId: instanceId,
    LifecycleTransition: `autoscaling:EC2_INSTANCE_${transition}`,
  };
}

export function terminateAction(about: EventOf): object {
  const detail = hookDetail(about, "TERMINATING");
  const type = "EC2 Instance-terminate Lifecycle Action";
  return event(about, { source: "aws.autoscaling", type, detail });
}

export function launchAction(about: EventOf): object {
  const detail = hookDetail(about, "LAUNCHING");
  const type = "EC2 Instance-launch Lifecycle Action";
  return event(about, { source: "aws.autoscaling", type, detail });
}

/** As written by a hook whose notification target is the queue itself. */
export function directHook(about: EventOf, transition = "TERMINATING"): object {
  return {
    ...hookDetail(about, transition),
    Origin: "AutoScalingGroup",
    Destination: "EC2",
    Service: "AWS Auto Scaling",
    AccountId: "123456789012",
    RequestId: "0c1f7a3e-7f0e-4d6a-9d3b-5b7a5d1c2e3f",
    Time: about.time,
  };
}

export function testNotification(): object {
  return {
    AccountId: "123456789012",
    RequestId: "0c1f7a3e-7f0e-4d6a-9d3b-5b7a5d1c2e3f",
    AutoScalingGroupARN:
      "arn:aws:autoscaling:us-east-2:123456789012:autoScalingGroup:7a:x/spot-asg",
    AutoScalingGroupName: "spot-asg",
    Service: "AWS Auto Scaling",
    Event: "autoscaling:TEST_NOTIFICATION",
    Time: "2026-11-20T12:00:00.000Z",
  };
}

export function healthEvent(
  about: Omit<EventOf, "instanceId">,
  how: {
    readonly entities: readonly unknown[];
    readonly startTime: string;
    readonly more?: object;
  },
): object {
  const detail = {
    eventArn:
      "arn:aws:health:us-east-2::event/EC2/AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED/retirement-0c1f7a3e",
    service: "EC2",
    eventTypeCode: "AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED",
    eventTypeCategory: "scheduledChange",
    startTime: how.startTime,
    statusCode: "upcoming",
    eventDescription: [{ language: "en_US", latestDescription: "To be retired." }],
    affectedEntities: how.entities,
    ...how.more,
  };
  const type = "AWS Health Event";
  return event({ ...about, instanceId: "" }, { source: "aws.health", type, detail });
}

/** A message as SNS forwards it to a queue if raw delivery is off. */
export function inSns(body: object): object {
  return {
    Type: "Notification",
    MessageId: "d1a2b3c4-0000-1111-2222-333344445555",
    TopicArn: "arn:aws:sns:us-east-2:123456789012:spot",
    Message: JSON.stringify(body),
    Timestamp: "2026-11-20T12:00:01.123Z",
    SignatureVersion: "1",
    Signature: "EXAMPLE",
    SigningCertURL: "https://sns.us-east-2.amazonaws.com/SimpleNotificationService.pem",
    UnsubscribeURL: "https://sns.us-east-2.amazonaws.com/?Action=Unsubscribe",
  };
}
