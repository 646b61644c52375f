import { element, textElement } from "./aws-query-server.ts";

/** Load balancers and their instances, as Elastic Load Balancing lists them. */

interface Group {
  readonly arn: string;
  readonly type: string;
  readonly protocol: string;
  readonly vpc: string;
  readonly port: number;
}

export function groupItem({ arn, type, vpc, port, protocol }: Group): string {
  const parts = { TargetGroupArn: arn, TargetGroupName: arn.split("/")[1], Protocol: protocol };
  const texts = Object.entries({ ...parts, VpcId: vpc, TargetType: type }).map(([name, text]) =>
    textElement(name, text),
  );
  return texts.join("") + element("Port", port);
}

export function classicItem({
  name,
  instances,
}: {
  readonly name: string;
  readonly instances: ReadonlySet<string>;
}): string {
  return (
    textElement("LoadBalancerName", name) +
    element("Instances", [...instances].map(instanceItem).join(""))
  );
}

export function instanceItem(id: string): string {
  return element("member", element("InstanceId", id));
}
