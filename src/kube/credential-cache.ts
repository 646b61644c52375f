import type { Clock } from "../contracts/clock.ts";
import type { KubeAccess, KubeCredentials } from "./kube-access.ts";

/**
 * Long enough that a burst of a thousand requests reads the files once, short against the hour
 * that a bound token lives and the minute within which its file must be read again.
 */
const keepMs = 10_000;

interface Held {
  readonly credentials: Promise<KubeCredentials>;
  readonly readMs: number;
}

/** Credentials shared by requests that are sent at the same time. */
export class CredentialCache {
  readonly #access: KubeAccess;
  readonly #clock: Clock;
  #held: Held | undefined;

  constructor(access: KubeAccess, clock: Clock) {
    this.#access = access;
    this.#clock = clock;
  }

  async get(): Promise<KubeCredentials> {
    if (this.#held === undefined || this.#clock.monotonic() - this.#held.readMs >= keepMs) {
      this.#hold(this.#access.credentials());
    }
    return await (this.#held as Held).credentials;
  }

  /** Asks for new ones, once for all requests that `refused` was refused for. */
  async renew(refused: KubeCredentials): Promise<KubeCredentials> {
    if ((await this.get()) === refused) {
      this.#hold(this.#access.reload().then(() => this.#access.credentials()));
    }
    return await this.get();
  }

  /** What could not be got is not kept: the next request asks again. */
  #hold(credentials: Promise<KubeCredentials>): void {
    const held = { credentials, readMs: this.#clock.monotonic() };
    this.#held = held;
    credentials.catch(() => {
      if (this.#held === held) this.#held = undefined;
    });
  }
}
