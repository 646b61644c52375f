import {
  AwsQueryServer,
  element,
  errorResponse,
  type QueryAnswer,
  type QueryRefusal,
} from "./aws-query-server.ts";

const namespace = "http://sns.amazonaws.com/doc/2010-03-31/";
const faults = {
  Unreachable: { status: 500, code: "InternalError", text: "Internal server error" },
  RateLimited: { status: 400, code: "Throttling", text: "Rate exceeded" },
  RightMissing: {
    ...{ status: 403, code: "AuthorizationError" },
    text: "User: x is not authorized to perform: SNS:Publish",
  },
} as const satisfies Record<string, QueryRefusal>;

/**
 * SNS on loopback, as far as publishing needs it, in the Query protocol of its model, 2010-03-31.
 */
export class SnsServer extends AwsQueryServer {
  readonly topics = new Set<string>();
  readonly published: {
    readonly topic: string;
    readonly subject: string | null;
    readonly message: string;
    /** Only for FIFO topics. */
    readonly group?: string;
  }[] = [];
  /** What FIFO topics have accepted: a message with the same id within five minutes is dropped. */
  readonly #deduplicated = new Set<string>();
  fault: keyof typeof faults | undefined;
  readonly denied = new Set<string>();
  readonly actions: string[] = [];

  protected override answer(asked: URLSearchParams): QueryAnswer {
    const action = asked.get("Action") ?? "";
    this.actions.push(action);
    const found = this.#refusalOf(action) ?? this.#carryOut(action, asked);
    if (typeof found !== "string") return errorResponse(found, namespace);
    const xml = `<${action}Response xmlns="${namespace}">${element(`${action}Result`, found)}</${action}Response>`;
    return { status: 200, xml };
  }

  #refusalOf(action: string): QueryRefusal | undefined {
    if (this.fault !== undefined) return faults[this.fault];
    return this.denied.has(action) ? faults.RightMissing : undefined;
  }

  #carryOut(action: string, asked: URLSearchParams): string | QueryRefusal {
    const topic = asked.get("TopicArn") ?? "";
    if (!this.topics.has(topic)) {
      return { status: 404, code: "NotFound", text: "Topic does not exist" };
    }
    if (action === "GetTopicAttributes") return element("Attributes", "");
    const [subject, message = ""] = [asked.get("Subject"), asked.get("Message") ?? ""];
    // As SNS documents it: 1 to 99 ASCII characters without line breaks, and at most 256 KiB.
    if (subject !== null && !/^[\x20-\x7e]{1,99}$/.test(subject)) {
      return { status: 400, code: "InvalidParameter", text: "Invalid parameter: Subject" };
    }
    if (message === "" || Buffer.byteLength(message) > 256 * 1024) {
      return { status: 400, code: "InvalidParameter", text: "Invalid parameter: Message" };
    }
    if (topic.endsWith(".fifo")) return this.#inOrder({ topic, subject, message }, asked);
    this.published.push({ topic, subject, message });
    return element("MessageId", `message-${this.published.length}`);
  }

  /** As SNS documents it for topics without ContentBasedDeduplication. */
  #inOrder(
    published: (typeof this.published)[number],
    asked: URLSearchParams,
  ): string | QueryRefusal {
    const [group, id] = [asked.get("MessageGroupId"), asked.get("MessageDeduplicationId")];
    for (const value of [group, id]) {
      if (value !== null && /^[!-~]{1,128}$/.test(value)) continue;
      const text = "Invalid parameter: The MessageGroupId parameter is required for FIFO topics";
      return { status: 400, code: "InvalidParameter", text };
    }
    const isNew = !this.#deduplicated.has(`${published.topic} ${id}`);
    this.#deduplicated.add(`${published.topic} ${id}`);
    if (isNew) this.published.push({ ...published, group: String(group) });
    return element("MessageId", `message-${this.published.length}`);
  }
}
