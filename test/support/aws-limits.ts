import { listOf, membersOf, type QueryRefusal } from "./aws-query-server.ts";

/**
 * What EC2, Auto Scaling and Elastic Load Balancing refuse because a request is too large, or
 * combines parameters that exclude each other: the limits of their API references. Each server
 * asks first.
 */
export function overLimit(asked: URLSearchParams): QueryRefusal | undefined {
  switch (asked.get("Version")) {
    case "2016-11-15":
      return overLimitOfEc2(asked);
    case "2011-01-01":
      return overLimitOfAutoScaling(asked);
    default:
      return overLimitOfLoadBalancing(asked);
  }
}

/** The largest change of targets that is never refused for its size. */
const mostChanged = 200;

function overLimitOfLoadBalancing(asked: URLSearchParams): QueryRefusal | undefined {
  if (isOutside(asked.get("PageSize"), [1, 400])) {
    return validation("The page size must be between 1 and 400");
  }
  const isChange = /^(Der|R)egisterTargets$/.test(asked.get("Action") ?? "");
  if (!isChange || membersOf(asked, "Targets.member").length <= mostChanged) return undefined;
  return { status: 503, code: "ServiceUnavailable", text: "Too many targets at once" };
}

/** The lists of ids that exclude `MaxResults` in the same request. */
const idLists = ["InstanceId", "GroupId", "NetworkInterfaceId"];

function overLimitOfEc2(asked: URLSearchParams): QueryRefusal | undefined {
  const filterValues = [...asked.keys()].filter((key) => /^Filter\.\d+\.Value\.\d+$/.test(key));
  if (filterValues.length > 200) {
    const text = "The maximum number of filter values specified on a single call is 200";
    return { status: 400, code: "FilterLimitExceeded", text };
  }
  const most = asked.get("MaxResults");
  if (isOutside(most, [5, 1000])) {
    const text = `Value ( ${most} ) for parameter maxResults is invalid. Expecting a value between 5 and 1000.`;
    return { status: 400, code: "InvalidParameterValue", text };
  }
  const list = idLists.find((name) => listOf(asked, name).length > 0);
  if (most !== null && list !== undefined) {
    const text = `The parameter ${list} cannot be used with the parameter maxResults`;
    return { status: 400, code: "InvalidParameterCombination", text };
  }
  return undefined;
}

function overLimitOfAutoScaling(asked: URLSearchParams): QueryRefusal | undefined {
  const action = asked.get("Action") ?? "";
  const ids = membersOf(asked, "InstanceIds.member").length;
  const mostIds = { DescribeAutoScalingInstances: 50, DetachInstances: 20 }[action];
  if (mostIds !== undefined && ids > mostIds) {
    return validation(`The number of instance ids must be at most ${mostIds}`);
  }
  const names = membersOf(asked, "AutoScalingGroupNames.member").length;
  const mostNames = Number(asked.get("MaxRecords") ?? 50);
  if (names > mostNames) return validation(`The number of names must be at most ${mostNames}`);
  const mostRecords = action === "DescribeAutoScalingInstances" ? 50 : 100;
  return isOutside(asked.get("MaxRecords"), [1, mostRecords])
    ? validation(`The number of records must be at most ${mostRecords}`)
    : undefined;
}

function isOutside(text: string | null, [least, most]: readonly [number, number]): boolean {
  return text !== null && !(Number(text) >= least && Number(text) <= most);
}

function validation(text: string): QueryRefusal {
  return { status: 400, code: "ValidationError", text };
}
