import { execFile } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { type ChildPart, startPart } from "./child-part.ts";
import { freePort } from "./free-port.ts";
import { waitUntil } from "./wait-until.ts";

/** github.com/getmoto/moto, Apache-2.0: a server that speaks AWS's protocols. */
const release = "5.2.5";
const region = "eu-west-1";
const versions: Readonly<Record<string, string>> = {
  ec2: "2016-11-15",
  autoscaling: "2011-01-01",
  sns: "2010-03-31",
};

/**
 * Ends with the test that started it, because the pipe of its standard input breaks then. It also
 * patches two races in moto: a deletion while another message is deleted or sent can lose that
 * message or restore a deleted one, and a message whose visibility changes during a count is
 * counted twice or not at all.
 */
const program = [
  "import os, sys, threading",
  "from moto.server import main",
  "from moto.sqs.models import Queue",
  "delete = Queue.delete_message",
  "def delete_alone(queue, handle):",
  "    with queue._messages_lock:",
  "        delete(queue, handle)",
  "Queue.delete_message = delete_alone",
  "described = Queue.attributes.fget",
  "def described_at_once(queue):",
  "    result, all = described(queue), len(queue._messages)",
  "    shown = all - result['ApproximateNumberOfMessagesNotVisible']",
  "    return {**result, 'ApproximateNumberOfMessages': shown}",
  "Queue.attributes = property(described_at_once)",
  "threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()",
  "main(sys.argv[1:])",
].join("\n");

/**
 * SQS by moto, on loopback, with one queue. Messages are sent with plain requests, without the AWS
 * SDK.
 */
export class Moto {
  readonly #part: ChildPart;
  readonly #folder: string;
  readonly url: string;
  queueUrl = "";

  private constructor(part: ChildPart, folder: string, url: string) {
    this.#part = part;
    this.#folder = folder;
    this.url = url;
  }

  static async start(onDeath: (error: Error) => void = () => {}): Promise<Moto> {
    const python = await install();
    const folder = mkdtempSync(join(tmpdir(), "lastcall-moto-"));
    const port = await freePort();
    const args = ["-c", program, "-H", "127.0.0.1", "-p", String(port)];
    const part = startPart({ name: "moto", command: python, args, folder, onDeath });
    const moto = new Moto(part, folder, `http://127.0.0.1:${port}`);
    await waitUntil(async () => (await fetch(`${moto.url}/moto-api/`)).ok, {
      what: `moto answers (${part.logFile})`,
      timeoutMs: 60_000,
      intervalMs: 100,
    });
    await moto.makeQueue();
    return moto;
  }

  /** The variables with which a process uses it as AWS. */
  get environment(): Readonly<Record<string, string>> {
    return {
      AWS_ENDPOINT_URL: this.url,
      AWS_REGION: region,
      AWS_ACCESS_KEY_ID: "test",
      AWS_SECRET_ACCESS_KEY: "test",
    };
  }

  async makeQueue(name = "notices"): Promise<void> {
    const { QueueUrl } = await this.#ask("CreateQueue", { QueueName: name });
    this.queueUrl = String(QueueUrl);
  }

  /** Sends each body as a message, at once, ten per request. */
  async send(...bodies: readonly unknown[]): Promise<void> {
    const Entries = bodies.map((body, place) => ({
      Id: String(place),
      MessageBody: typeof body === "string" ? body : JSON.stringify(body),
    }));
    await Promise.all(
      inTens(Entries).map((some) =>
        this.#ask("SendMessageBatch", { QueueUrl: this.queueUrl, Entries: some }),
      ),
    );
  }

  /**
   * Receives `count` messages with this many readers, passes each on, and deletes it at once. A
   * queue may deliver a message twice, and moto sometimes does to two concurrent readers: it counts
   * once.
   */
  async read(
    count: number,
    readers: number,
    onText: (text: string) => void = () => {},
  ): Promise<void> {
    const QueueUrl = this.queueUrl;
    const seen = new Set<string>();
    const read = async (): Promise<void> => {
      while (seen.size < count) {
        const asked = { QueueUrl, MaxNumberOfMessages: 10, WaitTimeSeconds: 0 };
        const { Messages = [] } = (await this.#ask("ReceiveMessage", asked)) as {
          Messages?: readonly {
            readonly MessageId: string;
            readonly ReceiptHandle: string;
            readonly Body: string;
          }[];
        };
        if (Messages.length === 0) continue;
        for (const { MessageId, Body } of Messages) {
          if (seen.has(MessageId)) continue;
          seen.add(MessageId);
          onText(Body);
        }
        const Entries = Messages.map(({ ReceiptHandle }, place) => ({
          Id: String(place),
          ReceiptHandle,
        }));
        await this.#ask("DeleteMessageBatch", { QueueUrl, Entries });
      }
    };
    await Promise.all(Array.from({ length: readers }, read));
  }

  /** The numbers of messages in the queue that are visible to readers, and that are hidden. */
  async count(): Promise<{ readonly shown: number; readonly hidden: number }> {
    const { Attributes } = (await this.#ask("GetQueueAttributes", {
      QueueUrl: this.queueUrl,
      AttributeNames: ["All"],
    })) as { Attributes: Record<string, string> };
    return {
      shown: Number(Attributes.ApproximateNumberOfMessages),
      hidden: Number(Attributes.ApproximateNumberOfMessagesNotVisible),
    };
  }

  /**
   * The response of a service with the Query protocol; moto takes the service from the signature.
   */
  async query(service: string, asked: Readonly<Record<string, string>>): Promise<string> {
    const answer = await fetch(this.url, {
      method: "POST",
      headers: {
        authorization: `AWS4-HMAC-SHA256 Credential=test/20261120/${region}/${service}/aws4_request`,
      },
      body: new URLSearchParams({ Version: versions[service] ?? "", ...asked }),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`Cannot ${asked.Action}: ${answer.status} ${text}`);
    return text;
  }

  /** A call to EventBridge, which its API still calls CloudWatch Events. */
  async events(action: string, body: object): Promise<void> {
    const answer = await fetch(this.url, {
      method: "POST",
      headers: {
        "content-type": "application/x-amz-json-1.1",
        "x-amz-target": `AWSEvents.${action}`,
        authorization: `AWS4-HMAC-SHA256 Credential=test/20261120/${region}/events/aws4_request`,
      },
      body: JSON.stringify(body),
    });
    if (!answer.ok) throw new Error(`Cannot ${action}: ${answer.status} ${await answer.text()}`);
  }

  async stop(): Promise<void> {
    await this.#part.kill();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  async #ask(action: string, body: object): Promise<Readonly<Record<string, unknown>>> {
    const answer = await fetch(this.url, {
      method: "POST",
      headers: {
        "content-type": "application/x-amz-json-1.0",
        "x-amz-target": `AmazonSQS.${action}`,
        // moto reads only the region and the service from it.
        authorization: `AWS4-HMAC-SHA256 Credential=test/20261120/${region}/sqs/aws4_request`,
      },
      body: JSON.stringify(body),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`Cannot ${action}: ${answer.status} ${text}, expected 200`);
    return text === "" ? {} : JSON.parse(text);
  }
}

/** SQS accepts at most ten messages per request. */
function inTens<T>(all: readonly T[]): readonly (readonly T[])[] {
  const count = Math.ceil(all.length / 10);
  return Array.from({ length: count }, (_, place) => all.slice(place * 10, (place + 1) * 10));
}

/** Installs moto into a cache outside the checkout, once; returns the path of its python. */
async function install(): Promise<string> {
  const cache = join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "lastcall");
  const home = join(cache, `moto-${release}`);
  const python = join(home, "bin", "python");
  if (existsSync(home)) return python;
  // Under another name until it is complete; if two test files install at once, the first one wins.
  const half = `${home}.${process.pid}`;
  mkdirSync(cache, { recursive: true });
  const run = promisify(execFile);
  try {
    await run("python3", ["-m", "venv", half], { timeout: 120_000 });
    const wanted = `moto[server,sqs]==${release}`;
    const pip = ["-m", "pip", "install", "--quiet", wanted];
    await run(join(half, "bin", "python"), pip, { timeout: 600_000 });
    if (!existsSync(home)) renameSync(half, home);
  } catch (error) {
    if (existsSync(home)) return python;
    const told = String((error as { stderr?: string }).stderr || error).trim();
    throw new Error(
      `Cannot install moto ${release} into ${home}: ${told.split("\n").at(-1)}; python3 with venv, and PyPI, are required`,
      { cause: error },
    );
  } finally {
    rmSync(half, { recursive: true, force: true });
  }
  return python;
}
