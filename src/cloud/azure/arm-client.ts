import type { Clock } from "../../contracts/clock.ts";
import { type BackoffLimits, backoffMs } from "../../core/chance/backoff.ts";
import type { Rng } from "../../core/chance/rng.ts";
import { type Fields, fieldsOf, listOf, trimmedTextOf } from "../../core/json/json-field.ts";
import { type Millis, millis, seconds } from "../../core/time/time.ts";
import { isLastcallError, LastcallError } from "../../errors.ts";
import type { ApiEndpoint } from "../release/api-endpoint.ts";
import type { TokenSource } from "../release/rest-exchange.ts";
import { exchange, jsonObjectOf, type RestAnswer } from "../release/rest-exchange.ts";
import { type ArmPurpose, faultOfArm, readArmError } from "./arm-fault.ts";

export interface ArmCall extends ArmPurpose {
  readonly method: "GET" | "POST" | "DELETE";
  /**
   * A resource's id, such as `/subscriptions/S/resourceGroups/G/…`; or the URL of an operation or
   * page.
   */
  readonly path: string;
  /** Absent where `path` is a whole URL. */
  readonly apiVersion?: string | undefined;
  readonly query?: Readonly<Record<string, string>> | undefined;
  readonly body?: unknown;
}

export type ArmAnswer =
  | {
      readonly kind: "Found";
      readonly status: number;
      readonly body: Fields;
      readonly headers: Headers;
    }
  /** Azure itself said that there is no such resource. */
  | { readonly kind: "NotFound" };

export interface ArmClientOptions {
  readonly endpoint: ApiEndpoint;
  readonly tokens: TokenSource;
  readonly fetch: typeof fetch;
  readonly clock: Clock;
  readonly rng: Rng;
}

const timeoutMs = seconds(30);
/**
 * Four attempts over about 1.5 to 3 s of pauses, or as long as Azure asks to be left alone, up to
 * 15 s each.
 */
const attempts = 4;
const retryRule: BackoffLimits = { firstMs: seconds(0.5), mostMs: seconds(4) };
const longestRetryAfterMs = seconds(15);

/** Azure Resource Manager over a `fetch`. */
export class ArmClient {
  readonly #options: ArmClientOptions;

  constructor(options: ArmClientOptions) {
    this.#options = options;
  }

  /** Sends a call once. Throws `LastcallError` for every answer but success and "not found". */
  async send(call: ArmCall, signal: AbortSignal): Promise<ArmAnswer> {
    return interpret(await this.#ask(call, signal), call);
  }

  /**
   * As `send`, for calls that may be repeated: faults that can pass are tried again, four times in
   * all.
   */
  async sendPatiently(call: ArmCall, signal: AbortSignal): Promise<ArmAnswer> {
    const { clock, rng } = this.#options;
    for (let attempt = 0; ; attempt++) {
      let askedMs = 0;
      try {
        const answer = await this.#ask(call, signal);
        askedMs = Math.min(retryAfterMs(answer.headers) ?? 0, longestRetryAfterMs);
        return interpret(answer, call);
      } catch (error) {
        const again = isLastcallError(error) && error.retryable && attempt + 1 < attempts;
        if (!again) throw error;
      }
      const pauseMs = Math.max(askedMs, backoffMs(attempt, rng, retryRule));
      await clock.sleep(millis(pauseMs), signal);
    }
  }

  async #ask(call: ArmCall, signal: AbortSignal): Promise<RestAnswer> {
    const first = await this.#exchange(call, signal);
    if (first.status !== 401) return first;
    // A token can be withdrawn before its time is up: ask once with a fresh one.
    this.#options.tokens.forget();
    return this.#exchange(call, signal);
  }

  #exchange(call: ArmCall, signal: AbortSignal): Promise<RestAnswer> {
    const { method, body } = call;
    const tools = { ...this.#options, noAnswer: (found: string) => noAnswer(call, found) };
    return exchange({ method, url: this.#urlOf(call), body, timeoutMs }, tools, signal);
  }

  /** A token goes to the endpoint alone, whatever URL an answer names. */
  #urlOf({ path, apiVersion, query, action }: ArmCall): string {
    const { baseUrl } = this.#options.endpoint;
    if (path.startsWith("/")) {
      const asked = new URLSearchParams({ ...query, "api-version": apiVersion ?? "" });
      return `${baseUrl}${path}?${asked}`;
    }
    if (URL.canParse(path) && new URL(path).origin === new URL(baseUrl).origin) return path;
    throw new LastcallError(
      "CLOUD_REFUSED",
      `Cannot ${action}: Azure named a URL of another host, expected one of ${baseUrl}`,
    );
  }
}

/** `Retry-After` in seconds; a date is not used by Resource Manager. */
export function retryAfterMs(headers: Headers): Millis | undefined {
  const asked = Number(headers.get("retry-after") ?? "");
  return Number.isFinite(asked) && asked > 0 ? seconds(asked) : undefined;
}

function interpret(answer: RestAnswer, call: ArmCall): ArmAnswer {
  const { status, text, headers } = answer;
  const body = jsonObjectOf(text);
  if (status >= 200 && status < 300) {
    // What was taken or is done is often answered without a body.
    if (body !== undefined || text === "") {
      return { kind: "Found", status, body: body ?? {}, headers };
    }
    throw noAnswer(call, "an answer that is no JSON object");
  }
  const error = readArmError(body);
  if (status === 404 && isAboutTheResource(error.code)) return { kind: "NotFound" };
  throw faultOfArm({ status, ...error }, call);
}

/**
 * Whether a 404 speaks of the resource asked for. One without Azure's own error came from something
 * in between, and that a group or subscription is not found says nothing about a machine: taking
 * either for "gone" would end a departure whose machine still runs.
 */
function isAboutTheResource(code: string): boolean {
  return /^(ResourceNotFound|NotFound|InstanceIdNotFound)$/.test(code);
}

function noAnswer({ action }: ArmPurpose, found: string): LastcallError {
  const message = `Cannot ${action}: found ${found}, expected an answer of Azure`;
  return new LastcallError("CLOUD_UNREACHABLE", message);
}

/** Every item of a list, page by page. */
export async function* armItems(
  client: ArmClient,
  call: ArmCall,
  signal: AbortSignal,
): AsyncGenerator<Fields> {
  let next: ArmCall | undefined = call;
  while (next !== undefined) {
    const answer = await client.sendPatiently(next, signal);
    if (answer.kind === "NotFound") return;
    const { value, nextLink } = answer.body;
    yield* listOf(value).map(fieldsOf);
    const path = trimmedTextOf(nextLink);
    const { action, permission } = call;
    next = path === undefined ? undefined : { method: "GET", path, action, permission };
  }
}
