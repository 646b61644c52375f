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
 * Who may see the board: a browser that came by the printed address, whose token counts once and is
 * exchanged for a cookie. A page of another site, or one whose name was pointed at loopback, has no
 * business here, whatever cookies the browser would send along.
 */
export class PageGuard {
  readonly token = secret();
  readonly #session = secret();
  readonly #hosts: ReadonlySet<string>;
  readonly #cookie: string;
  readonly #command: string;
  #isTokenSpent = false;

  /** `command` is what serves it, such as `lastcall board`: it is named to whoever has no token. */
  constructor(port: number, command: string) {
    this.#command = command;
    this.#hosts = new Set(["127.0.0.1", "localhost", "[::1]"].map((host) => `${host}:${port}`));
    // Cookies know no port: two boards of one machine must not take each other's away.
    this.#cookie = `lastcall-board-${port}`;
  }

  admit(request: GuardedRequest): Admission {
    const refused = this.#strange(request);
    if (refused !== undefined) return { kind: "Refused", status: 403, problem: refused };
    if (this.#hasSession(request.headers)) return { kind: "Admitted" };
    const { token, isPage, method } = request;
    // A HEAD, as programs send that only preview an address, spends nothing.
    if (isPage && method === "GET" && token !== null && isSame(token, this.token)) {
      if (this.#isTokenSpent) return refusal(spent(this.#command));
      this.#isTokenSpent = true;
      const flags = "Path=/; HttpOnly; SameSite=Strict";
      return { kind: "Admitted", setCookie: `${this.#cookie}=${this.#session}; ${flags}` };
    }
    return refusal(token === null ? unknown(this.#command) : wrong);
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

const wrong = "The token in this address is not this board's: open the address printed last";

function unknown(command: string): string {
  return `This browser has not been let in: open the address that ${command} printed, with its token`;
}

function spent(command: string): string {
  return `The token in this address has been used: it opens the board once; run ${command} again`;
}

function refusal(problem: string): Admission {
  return { kind: "Refused", status: 401, problem };
}

function secret(): string {
  return randomBytes(24).toString("base64url");
}

/** Takes as long for any guess. */
function isSame(given: string, wanted: string): boolean {
  const digest = (text: string) => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(given), digest(wanted));
}
