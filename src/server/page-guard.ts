import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";

export interface GuardedRequest {
  readonly method: string;
  readonly headers: IncomingHttpHeaders;
  readonly token: string | null;
  /** Whether it asks for the page itself. */
  readonly isPage: boolean;
}

export type Admission =
  | { readonly kind: "Admitted"; readonly setCookie?: string | undefined }
  | { readonly kind: "Refused"; readonly status: number; readonly problem: string };

/**
 * Who may see the board: a browser that came by a printed address, whose token counts once and is
 * exchanged for a cookie. There is a token only once somebody has asked for an address. A page of
 * another site, or one whose name was pointed at loopback, has no business here, whatever cookies
 * the browser would send along.
 */
export class PageGuard {
  readonly #session = secret();
  readonly #hosts: ReadonlySet<string>;
  readonly #cookie: string;
  readonly #entry: string;
  #token: string | undefined;
  readonly #spent: string[] = [];

  /** `entry` is how to come by an address: it is told to whoever has none. */
  constructor(port: number, entry: string) {
    this.#entry = entry;
    this.#hosts = new Set(["127.0.0.1", "localhost", "[::1]"].map((host) => `${host}:${port}`));
    // Cookies know no port: two boards of one machine must not take each other's away.
    this.#cookie = `lastcall-board-${port}`;
  }

  /** For one browser; the same until it has been used. */
  token(): string {
    this.#token ??= secret();
    return this.#token;
  }

  admit(request: GuardedRequest): Admission {
    const refused = this.#strange(request);
    if (refused !== undefined) return { kind: "Refused", status: 403, problem: refused };
    if (this.#hasSession(request.headers)) return { kind: "Admitted" };
    const { token, isPage, method } = request;
    // A HEAD, as programs send that only preview an address, spends nothing.
    if (isPage && method === "GET" && token !== null && this.#spend(token)) {
      const flags = "Path=/; HttpOnly; SameSite=Strict";
      return { kind: "Admitted", setCookie: `${this.#cookie}=${this.#session}; ${flags}` };
    }
    return { kind: "Refused", status: 401, problem: `${this.#found(token)}: ${this.#entry}` };
  }

  #spend(token: string): boolean {
    if (this.#token === undefined || !isSame(token, this.#token)) return false;
    this.#spent.push(this.#token);
    this.#token = undefined;
    return true;
  }

  #found(token: string | null): string {
    if (token === null) return "This browser has not been let in";
    return this.#spent.some((one) => isSame(token, one))
      ? "The token in this address has been used, and opens the board once"
      : "The token in this address is not this board's";
  }

  #strange({ method, headers }: GuardedRequest): string | undefined {
    const { host = "", origin } = headers;
    if (!this.#hosts.has(host.toLowerCase())) {
      return `Cannot serve the host ${JSON.stringify(host)}: the board answers to 127.0.0.1 and localhost alone`;
    }
    if (origin === undefined && method === "POST") {
      return "Cannot act: the request names no origin, expected the board's own page";
    }
    if (origin !== undefined && origin !== `http://${host}`) {
      return `Cannot serve a page of ${JSON.stringify(origin)}: expected the board's own page`;
    }
    const site = headers["sec-fetch-site"];
    const isOwn = site === undefined || site === "same-origin" || site === "none";
    const isFollowed = headers["sec-fetch-mode"] === "navigate" && method === "GET";
    return isOwn || isFollowed ? undefined : "Cannot serve a request of another site's page";
  }

  #hasSession({ cookie = "" }: IncomingHttpHeaders): boolean {
    return cookie.split(";").some((pair) => {
      const [name, value = ""] = pair.trim().split("=");
      return name === this.#cookie && isSame(value, this.#session);
    });
  }
}

function secret(): string {
  return randomBytes(24).toString("base64url");
}

/** Takes as long for any guess. */
function isSame(given: string, wanted: string): boolean {
  const digest = (text: string) => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(given), digest(wanted));
}
