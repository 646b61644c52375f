import type { ScheduledEvent } from "../../src/cloud/aws/ec2-machine.ts";
import { formatInstant } from "../../src/core/time/time.ts";
import { overLimit } from "./aws-limits.ts";
import { AwsQueryServer, type QueryAnswer } from "./aws-query-server.ts";

const faults = {
  Unreachable: { status: 503, code: "Unavailable", text: "The server is overloaded" },
  RateLimited: { status: 503, code: "RequestLimitExceeded", text: "Request limit exceeded." },
  RightMissing: {
    ...{ status: 403, code: "UnauthorizedOperation" },
    text: "You are not authorized to perform this operation.",
  },
  Garbage: undefined,
} as const;

/**
 * EC2 on loopback, as far as its lists of events and tags need it. Its responses have the form of
 * the API's model, version 2016-11-15, in the Query protocol. moto does not support scheduled
 * events.
 */
export class Ec2Server extends AwsQueryServer {
  events: ScheduledEvent[] = [];
  readonly tags = new Map<string, Readonly<Record<string, string>>>();
  /** Instances that an AWS service operates; see `isListed`. */
  readonly managed = new Set<string>();
  fault: keyof typeof faults | undefined;
  /** The largest number of items on one page. */
  pageSize = 1000;
  readonly actions: string[] = [];

  protected override answer(asked: URLSearchParams): QueryAnswer {
    const action = asked.get("Action") ?? "";
    this.actions.push(action);
    if (this.fault === "Garbage") return { status: 200, xml: "<html><body>Welcome</body></html>" };
    if (this.fault !== undefined) return refusal(faults[this.fault]);
    const over = overLimit(asked);
    if (over !== undefined) return refusal(over);
    switch (action) {
      case "DescribeInstanceStatus":
        return this.#page(action, "instanceStatusSet", this.#statuses(asked), asked);
      case "DescribeTags":
        return this.#page(action, "tagSet", this.#tagItems(asked), asked);
      default:
        return refusal({ status: 400, code: "InvalidAction", text: `No action ${action}` });
    }
  }

  #page(
    action: string,
    set: string,
    items: readonly string[],
    asked: URLSearchParams,
  ): QueryAnswer {
    const from = Number(asked.get("NextToken") ?? 0);
    const most = Math.min(this.pageSize, Number(asked.get("MaxResults") ?? 1000));
    const next = from + most < items.length ? `<nextToken>${from + most}</nextToken>` : "";
    const some = items.slice(from, from + most).map((item) => `<item>${item}</item>`);
    const xml =
      `<${action}Response xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"><requestId>7c6e177f</requestId>` +
      `<${set}>${some.join("")}</${set}>${next}</${action}Response>`;
    return { status: 200, xml };
  }

  #statuses(asked: URLSearchParams): readonly string[] {
    const filters = filtersOf(asked);
    const wanted = this.events.filter((event) => passes(filters, { "event.code": event.code }));
    const instances = new Set(wanted.map(({ instance }) => instance));
    const listed = [...instances].filter((one) => isListed(asked, this.managed.has(one ?? "")));
    return listed.map((instance) => {
      const events = wanted.filter((event) => event.instance === instance);
      return `${element("instanceId", instance)}<eventsSet>${events.map(eventItem).join("")}</eventsSet>`;
    });
  }

  #tagItems(asked: URLSearchParams): readonly string[] {
    const filters = filtersOf(asked);
    return [...this.tags].flatMap(([id, tags]) =>
      Object.entries(tags).flatMap(([key, value]) => {
        const facts = { "resource-type": "instance", "resource-id": id, key, value };
        if (!passes(filters, facts)) return [];
        const parts = { resourceId: id, resourceType: "instance", key, value };
        return Object.entries(parts)
          .map(([name, text]) => element(name, text))
          .join("");
      }),
    );
  }
}

function eventItem({ id, code, description, notBeforeAt }: ScheduledEvent): string {
  const notBefore = notBeforeAt === undefined ? undefined : formatInstant(notBeforeAt);
  return `<item>${element("instanceEventId", id)}${element("code", code)}${element("description", description)}${element("notBefore", notBefore)}</item>`;
}

function element(name: string, text: string | undefined): string {
  if (text === undefined) return "";
  const escaped = text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
  return `<${name}>${escaped}</${name}>`;
}

/**
 * Whether EC2 includes a resource in a list. An account may hide those that an AWS service
 * operates, such as the instances of EKS Auto Mode and their interfaces, from every list that does
 * not ask for them; here they are always hidden. Source:
 * https://aws.amazon.com/about-aws/whats-new/2026/04/ec2-managed-resource-visibility/ and, in the
 * API reference, IncludeManagedResources of DescribeInstances, DescribeInstanceStatus and
 * DescribeNetworkInterfaces. DescribeTags and DescribeSecurityGroups have no such parameter.
 */
export function isListed(asked: URLSearchParams, isManaged: boolean): boolean {
  return !isManaged || asked.get("IncludeManagedResources") === "true";
}

type Filters = ReadonlyMap<string, readonly string[]>;

/** `Filter.1.Name=key`, `Filter.1.Value.1=team`. */
export function filtersOf(asked: URLSearchParams): Filters {
  const filters = new Map<string, string[]>();
  for (const [name, text] of asked) {
    const place = /^Filter\.(\d+)\.Value\.\d+$/.exec(name)?.[1];
    if (place === undefined) continue;
    const key = asked.get(`Filter.${place}.Name`) ?? "";
    filters.set(key, [...(filters.get(key) ?? []), text]);
  }
  return filters;
}

/**
 * Whether a fact, or one of several with the same name, matches one of its filter's values. A
 * filter for an unknown fact matches nothing.
 */
export function passes(
  filters: Filters,
  facts: Readonly<Record<string, string | readonly string[] | undefined>>,
): boolean {
  return [...filters].every(([name, values]) => {
    const found = [facts[name] ?? []].flat();
    return found.some((fact) => values.some((value) => patternOf(value).test(fact)));
  });
}

/** `*` and `?` are wildcards unless preceded by a backslash. */
function patternOf(value: string): RegExp {
  const source = value.replaceAll(/\\.|[\s\S]/g, (sign) => {
    if (sign === "*") return ".*";
    if (sign === "?") return ".";
    return sign.slice(-1).replace(/[\\^$.*+?()[\]{}|]/, "\\$&");
  });
  return new RegExp(`^${source}$`, "su");
}

function refusal(fault: {
  readonly status: number;
  readonly code: string;
  readonly text: string;
}): QueryAnswer {
  const { status, code, text } = fault;
  const xml = `<Response><Errors><Error><Code>${code}</Code><Message>${text}</Message></Error></Errors><RequestID>7c6e177f</RequestID></Response>`;
  return { status, xml };
}
