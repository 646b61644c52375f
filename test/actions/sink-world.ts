import { sinkRunner } from "../../src/actions/sink-runners.ts";
import type { ActionRunner } from "../../src/contracts/action-runner.ts";
import type { ActionKind, ActionOf } from "../../src/core/policy/action.ts";
import type { ActionWorld } from "../contract/action-runner.contract.ts";
import {
  type ReceivedRequest,
  type Reply,
  sinkTools,
  startActionServer,
} from "../support/action-server.ts";

export const secretRef = { name: "lastcall-actions", key: "token" };
export const secret = "s3cret-t0ken";

/** A receiver for the contract suite: its responses and its state. */
export interface Receiver<Kind extends ActionKind> {
  readonly how: (url: string) => ActionOf<Kind>;
  readonly sort: ActionWorld<Kind>["sort"];
  readonly reply: (request: ReceivedRequest) => Reply;
  /** Default: the bodies of the received requests. */
  readonly state?: () => unknown;
  /** The secret, given the receiver's address. */
  readonly secret?: (url: string) => string;
}

export async function sinkWorld<Kind extends ActionKind>(
  receiver: Receiver<Kind>,
): Promise<ActionWorld<Kind> & { readonly requests: readonly ReceivedRequest[] }> {
  const server = await startActionServer(receiver.reply);
  const how = receiver.how(server.url);
  const value = receiver.secret?.(server.url) ?? secret;
  const tools = sinkTools(server.host, { "lastcall-actions/token": `${value}\n` });
  return {
    runner: sinkRunner(how.kind, tools) as unknown as ActionRunner<Kind>,
    how,
    sort: receiver.sort,
    requests: server.requests,
    secrets: [secret, value],
    state: () => structuredClone(receiver.state?.() ?? server.requests.map(({ body }) => body)),
    fail: (fault) => {
      // As some gateways do: the response contains the request.
      server.override = (response, request) => {
        response.writeHead(fault === "Unreachable" ? 503 : 403);
        response.end(`${request.path} ${request.query} ${JSON.stringify(request.headers)} not now`);
      };
    },
    heal: () => {
      server.override = undefined;
    },
    close: () => server.close(),
  };
}
