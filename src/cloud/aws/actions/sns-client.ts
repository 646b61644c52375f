import { createHash } from "node:crypto";
import { GetTopicAttributesCommand, PublishCommand, SNSClient } from "@aws-sdk/client-sns";
import type {
  ActionDone,
  ActionProblem,
  ActionRunner,
  PreparedTask,
} from "../../../contracts/action-runner.ts";
import { bytesOf, fitText } from "../../../core/action/template.ts";
import type { SnsMessage } from "../../../core/policy/action.ts";
import { type Millis, seconds } from "../../../core/time/time.ts";
import { isLastcallError } from "../../../errors.ts";
import { type AwsPurpose, clientSettings, faultOfAws } from "../aws-client.ts";
import { type InRegion, oneEach, problemOf, regionOfArn } from "../ec2-machine.ts";

const answerLimitMs: Millis = seconds(10);
/** The message limit of SNS, unless the topic has a larger one. */
const mostBytes = 256 * 1024;

type SnsKind = "sns";

/** Publishes to SNS topics. The AWS client finds credentials and endpoint. */
export class SnsRunner implements ActionRunner<SnsKind> {
  /** A topic is accessed in the region of its ARN. */
  readonly #clientIn: InRegion<SNSClient> = oneEach(
    (region) => new SNSClient(clientSettings({ region, answerLimitMs })),
  );

  /** Checks that the topic exists. A missing permission for that check is not a problem. */
  check({ topicArn }: SnsMessage, signal: AbortSignal): Promise<ActionProblem | undefined> {
    return problemOf("sns.topicArn", signal, async () => {
      const asked = askedOf(topicArn, "look at", "GetTopicAttributes");
      await this.#ask(topicArn, asked, signal, async (client) => {
        const command = new GetTopicAttributesCommand({ TopicArn: topicArn });
        await client.send(command, { abortSignal: signal });
      }).catch((error: unknown) => {
        if (!isLastcallError(error) || error.code !== "CLOUD_RIGHT_MISSING") throw error;
      });
    });
  }

  async prepare(_: unknown, signal: AbortSignal): Promise<undefined> {
    signal.throwIfAborted();
  }

  async apply(task: PreparedTask<SnsKind>, signal: AbortSignal): Promise<ActionDone> {
    const { topicArn, subject, message } = task.how;
    const asked = askedOf(topicArn, "publish to", "Publish");
    const answer = await this.#ask(topicArn, asked, signal, (client) => {
      const command = new PublishCommand({
        TopicArn: topicArn,
        Message: fitText(message, (text) => bytesOf(text) <= mostBytes),
        // SNS rejects an empty subject.
        Subject: subject === "" ? undefined : subject,
        ...(topicArn.endsWith(".fifo") ? inOrder(task) : {}),
      });
      return client.send(command, { abortSignal: signal });
    });
    return { detail: `published to ${topicArn}`, reference: answer.MessageId };
  }

  async undo(): Promise<ActionDone> {
    return { detail: "a message cannot be recalled" };
  }

  async #ask<T>(
    topicArn: string,
    asked: AwsPurpose,
    signal: AbortSignal,
    send: (client: SNSClient) => Promise<T>,
  ): Promise<T> {
    signal.throwIfAborted();
    try {
      return await send(this.#clientIn(regionOfArn(topicArn)));
    } catch (error) {
      signal.throwIfAborted();
      throw faultOfAws(error, asked);
    }
  }
}

const longestGroupId = 128;

/** The parameters that a FIFO topic requires. */
function inOrder({ departure, key }: PreparedTask<SnsKind>) {
  const group = departure.length <= longestGroupId ? departure : digest(departure);
  return { MessageGroupId: group, MessageDeduplicationId: digest(key) };
}

function digest(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

function askedOf(topicArn: string, action: string, call: string): AwsPurpose {
  return {
    action: `${action} ${topicArn}`,
    permission: `sns:${call} on the topic`,
    service: "SNS",
    wanted: "a topic that exists",
    unknown: /^NotFound|^InvalidParameter/,
  };
}
