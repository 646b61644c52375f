import {
  DescribeInstanceStatusCommand,
  DescribeTagsCommand,
  EC2Client,
  type InstanceStatus,
} from "@aws-sdk/client-ec2";
import { instant, type Millis, seconds } from "../../core/time/time.ts";
import { faultOfAws } from "./aws-fault.ts";
import { clientSettings } from "./client-settings.ts";
import type { Ec2, ScheduledEvent, Tag } from "./ec2.ts";

const answerLimitMs: Millis = seconds(10);
/** The most that EC2 gives in one page. */
const pageSize = 1000;

/** Every kind of event that EC2 schedules: without this filter each running instance is listed. */
const eventCodes = [
  "instance-reboot",
  "instance-retirement",
  "instance-stop",
  "system-maintenance",
  "system-reboot",
];

interface Page<T> {
  /** Absent: the answer is not EC2's, which names its list where nothing is in it, too. */
  readonly items: readonly T[] | undefined;
  readonly next: string | undefined;
}

/** EC2, with credentials, region and endpoint as AWS' client finds them. */
export class Ec2Client implements Ec2 {
  readonly #client: EC2Client;

  /** `region`: absent: the environment says it. */
  constructor({ region }: { readonly region: string | undefined }) {
    this.#client = new EC2Client(clientSettings({ region, answerLimitMs }));
  }

  async scheduledEvents(abortSignal: AbortSignal): Promise<readonly ScheduledEvent[]> {
    const read = async (token: string | undefined): Promise<Page<InstanceStatus>> => {
      const command = new DescribeInstanceStatusCommand({
        Filters: [{ Name: "event.code", Values: eventCodes }],
        // One that its event has stopped is listed, too.
        IncludeAllInstances: true,
        MaxResults: pageSize,
        NextToken: token,
      });
      const answer = await this.#client.send(command, { abortSignal });
      return { items: answer.InstanceStatuses, next: answer.NextToken };
    };
    const statuses = await this.#all(read, "ec2:DescribeInstanceStatus", abortSignal);
    return statuses.flatMap(eventsOf);
  }

  async tagged(
    { key, value }: Tag,
    abortSignal: AbortSignal,
    only?: readonly string[],
  ): Promise<ReadonlySet<string>> {
    const Filters = [
      { Name: "resource-type", Values: ["instance"] },
      { Name: "key", Values: [literal(key)] },
      ...(value === undefined ? [] : [{ Name: "value", Values: [literal(value)] }]),
      ...(only === undefined ? [] : [{ Name: "resource-id", Values: [...only] }]),
    ];
    const read = async (token: string | undefined): Promise<Page<string>> => {
      const command = new DescribeTagsCommand({ Filters, MaxResults: pageSize, NextToken: token });
      const answer = await this.#client.send(command, { abortSignal });
      const ids = answer.Tags?.flatMap(({ ResourceId }) => ResourceId ?? []);
      return { items: ids, next: answer.NextToken };
    };
    return new Set(await this.#all(read, "ec2:DescribeTags", abortSignal));
  }

  async #all<T>(
    read: (token: string | undefined) => Promise<Page<T>>,
    permission: string,
    signal: AbortSignal,
  ): Promise<readonly T[]> {
    const items: T[] = [];
    let token: string | undefined;
    try {
      do {
        const page = await read(token);
        if (page.items === undefined) throw new TypeError("the answer holds no list");
        items.push(...page.items);
        token = page.next || undefined;
      } while (token !== undefined);
      return items;
    } catch (error) {
      signal.throwIfAborted();
      throw faultOfAws(error, {
        action: `ask EC2 by ${permission}`,
        permission: `${permission} on *`,
        service: "EC2",
        wanted: "a region and an endpoint that are EC2's",
      });
    }
  }
}

function eventsOf({ InstanceId, Events = [] }: InstanceStatus): readonly ScheduledEvent[] {
  return Events.map((event) => {
    const atMs = event.NotBefore?.getTime() ?? Number.NaN;
    return {
      instance: InstanceId,
      id: event.InstanceEventId,
      code: event.Code,
      description: event.Description,
      notBeforeAt: Number.isFinite(atMs) ? instant(atMs) : undefined,
    };
  });
}

/** In a filter's value EC2 takes `*` and `?` for wildcards. */
function literal(text: string): string {
  return text.replaceAll(/[\\*?]/g, (sign) => `\\${sign}`);
}
