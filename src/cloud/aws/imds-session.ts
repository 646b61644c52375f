import type { Clock } from "../../contracts/clock.ts";
import { millis } from "../../core/time/time.ts";
import { LastcallError } from "../../errors.ts";
import type {
  MetadataAnswer,
  MetadataClient,
  MetadataRequest,
} from "../metadata/metadata-client.ts";

const wantedSeconds = 21_600;

interface Token {
  readonly text: string;
  /** On the monotonic clock: when a new one is asked for, at half its life. */
  readonly renewMs: number;
}

/**
 * Asks EC2's metadata service in its second version only: with a token that is renewed at half its
 * life and replaced when it is refused. There is no way back to version 1, which any pod's
 * server-side request forgery could use.
 */
export class ImdsSession {
  readonly #client: MetadataClient;
  readonly #clock: Clock;
  #token: Token | undefined;
  #asking: Promise<Token> | undefined;

  constructor(client: MetadataClient, clock: Clock) {
    this.#client = client;
    this.#clock = clock;
  }

  /** GETs `path`; a token that is refused with 401 is replaced, once. Throws as `MetadataClient.ask`. */
  async get(path: string, signal: AbortSignal): Promise<MetadataAnswer> {
    const first = await this.#current(signal);
    const answer = await this.#client.ask(withToken(path, first), signal);
    if (answer.status !== 401) return answer;
    if (this.#token === first) this.#token = undefined;
    return this.#client.ask(withToken(path, await this.#current(signal)), signal);
  }

  /** Many channels that need a new token at one time ask for it once. */
  async #current(signal: AbortSignal): Promise<Token> {
    const token = this.#token;
    if (token !== undefined && this.#clock.monotonic() < token.renewMs) return token;
    this.#asking ??= this.#fresh(signal).finally(() => {
      this.#asking = undefined;
    });
    try {
      return await this.#asking;
    } catch (error) {
      // Half of its life is left: it does until a new one comes.
      if (token !== undefined && !signal.aborted) return token;
      throw error;
    }
  }

  async #fresh(signal: AbortSignal): Promise<Token> {
    const answer = await this.#client.ask(
      {
        method: "PUT",
        path: "/latest/api/token",
        headers: { "x-aws-ec2-metadata-token-ttl-seconds": String(wantedSeconds) },
      },
      signal,
    );
    const text = answer.text.trim();
    if (answer.status !== 200 || !/^[\x21-\x7e]{1,1024}$/.test(text)) {
      throw new LastcallError(
        "CLOUD_UNREACHABLE",
        `Cannot get a token of the metadata service: it answered ${answer.status}, expected 200 with a token (a pod outside the host's network gets none where the hop limit is 1)`,
      );
    }
    const told = Number(answer.header("x-aws-ec2-metadata-token-ttl-seconds"));
    const lifeMs = (told > 0 ? Math.min(told, wantedSeconds) : wantedSeconds) * 1000;
    this.#token = { text, renewMs: this.#clock.monotonic() + millis(lifeMs / 2) };
    return this.#token;
  }
}

function withToken(path: string, token: Token): MetadataRequest {
  return { path, headers: { "x-aws-ec2-metadata-token": token.text } };
}
