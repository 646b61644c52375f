import { InvokeCommand, LambdaClient } from "@aws-sdk/client-lambda";
import type {
  ActionDone,
  ActionProblem,
  ActionRunner,
  PreparedTask,
} from "../../../contracts/action-runner.ts";
import type { LambdaCall } from "../../../core/policy/action.ts";
import { type Millis, seconds } from "../../../core/time/time.ts";
import { isLastcallError, LastcallError } from "../../../errors.ts";
import { clientSettings, faultOfAws } from "../aws-client.ts";
import { type InRegion, oneEach, problemOf, regionOfArn } from "../ec2-machine.ts";

const answerLimitMs: Millis = seconds(10);

type LambdaKind = "lambda";

/**
 * Invokes Lambda functions asynchronously; Lambda retries a failed invocation up to twice. The AWS
 * client finds credentials, region and endpoint.
 */
export class LambdaRunner implements ActionRunner<LambdaKind> {
  /** A function named by its ARN is invoked in the region of the ARN. */
  readonly #clientIn: InRegion<LambdaClient> = oneEach(
    (region) => new LambdaClient(clientSettings({ region, answerLimitMs })),
  );

  /**
   * Checks by Lambda's dry run, which needs the same permission. The payload is not checked,
   * because the template need not be JSON before it is rendered.
   */
  check({ functionName }: LambdaCall, signal: AbortSignal): Promise<ActionProblem | undefined> {
    const how = { functionName, payload: "{}" };
    return problemOf("lambda.functionName", signal, () =>
      this.#invoke(how, { type: "DryRun", status: 204 }, signal),
    );
  }

  async prepare(_: unknown, signal: AbortSignal): Promise<undefined> {
    signal.throwIfAborted();
  }

  async apply({ how }: PreparedTask<LambdaKind>, signal: AbortSignal): Promise<ActionDone> {
    await this.#invoke(how, { type: "Event", status: 202 }, signal);
    return { detail: `invoked ${how.functionName}` };
  }

  async undo(): Promise<ActionDone> {
    return { detail: "an invocation cannot be undone" };
  }

  async #invoke(
    { functionName, payload }: Omit<LambdaCall, "kind">,
    { type, status }: { readonly type: "Event" | "DryRun"; readonly status: number },
    signal: AbortSignal,
  ): Promise<void> {
    const command = new InvokeCommand({
      FunctionName: functionName,
      InvocationType: type,
      Payload: new TextEncoder().encode(payload ?? "{}"),
    });
    const asked = {
      action: `invoke the function ${functionName}`,
      permission: "lambda:InvokeFunction on the function",
      service: "Lambda",
      wanted: "a function that exists",
      unknown: /^ResourceNotFound/,
    };
    signal.throwIfAborted();
    try {
      const client = this.#clientIn(regionOfArn(functionName));
      const { StatusCode } = await client.send(command, { abortSignal: signal });
      if (StatusCode === status) return;
      const found = `found status ${StatusCode}`;
      throw new LastcallError(
        "CLOUD_UNREACHABLE",
        `Cannot ${asked.action}: ${found}, expected ${status}`,
      );
    } catch (error) {
      signal.throwIfAborted();
      throw isLastcallError(error) ? error : faultOfAws(error, asked);
    }
  }
}
