import {
  type Ec2,
  mostAskedFor,
  type ScheduledEvent,
  type Tag,
} from "../../src/cloud/aws/ec2-machine.ts";
import { LastcallError } from "../../src/errors.ts";

/** EC2 in memory. */
export class FakeEc2 implements Ec2 {
  events: ScheduledEvent[] = [];
  /** The tags of each instance, by id. */
  readonly tags = new Map<string, Readonly<Record<string, string>>>();
  fault: LastcallError | undefined;
  /** While it is set, no request is answered. */
  silent = false;
  readonly calls: string[] = [];

  async scheduledEvents(signal: AbortSignal): Promise<readonly ScheduledEvent[]> {
    await this.#called("scheduledEvents", signal);
    return [...this.events];
  }

  async tagged(
    { key, value }: Tag,
    signal: AbortSignal,
    only?: readonly string[],
  ): Promise<ReadonlySet<string>> {
    await this.#called(only === undefined ? "tagged" : `tagged ${only.join(",")}`, signal);
    if ((only?.length ?? 0) > mostAskedFor) throw new LastcallError("CLOUD_REFUSED", "too many");
    const found = [...this.tags].filter(([id, tags]) => {
      if (only !== undefined && !only.includes(id)) return false;
      return Object.hasOwn(tags, key) && (value === undefined || tags[key] === value);
    });
    return new Set(found.map(([id]) => id));
  }

  async #called(what: string, signal: AbortSignal): Promise<void> {
    this.calls.push(what);
    if (this.silent) {
      await new Promise((_, reject) => {
        signal.addEventListener("abort", () => reject(signal.reason));
      });
    }
    if (this.fault !== undefined) throw this.fault;
  }
}
