import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import type { PageText } from "../contracts/http-route.ts";

export interface GuardedRequest {
  readonly method: string;
  readonly headers: IncomingHttpHeaders;
  readonly token: string | null;
  /** Whether it requests the page itself. */
  readonly isPage: boolean;
}

export type Admission =
  | { readonly kind: "Admitted"; readonly setCookie?: string | undefined }
  | { readonly kind: "Refused"; readonly status: number; readonly problem: PageText };

/**
 * Decides who may see the board: a browser that opened a printed address, whose token is valid once
 * and exchanged for a cookie. A token exists only once an address has been requested. Pages of
 * other sites, or of a name that was pointed at loopback, are refused, whatever cookies the browser
 * sends along.
 */
export class PageGuard {
  readonly #session = secret();
  readonly #hosts: ReadonlySet<string>;
  readonly #cookie: string;
  readonly #entry: PageText;
  #token: string | undefined;
  readonly #spent: string[] = [];

  /** `entry` explains how to get an address, for visitors without one. */
  constructor(port: number, entry: PageText) {
    this.#entry = entry;
    this.#hosts = new Set(["127.0.0.1", "localhost", "[::1]"].map((host) => `${host}:${port}`));
    // Cookies ignore ports: two boards on one machine must not overwrite each other's.
    this.#cookie = `lastcall-board-${port}`;
  }

  /** The token for one browser; the same until it has been used. */
  token(): string {
    this.#token ??= secret();
    return this.#token;
  }

  admit(request: GuardedRequest): Admission {
    const refused = this.#strange(request);
    if (refused !== undefined) return { kind: "Refused", status: 403, problem: refused };
    if (this.#hasSession(request.headers)) return { kind: "Admitted" };
    const { token, isPage, method } = request;
    // A HEAD request, such as from a program that previews an address, does not use up the token.
    if (isPage && method === "GET" && token !== null && this.#spend(token)) {
      const flags = "Path=/; HttpOnly; SameSite=Strict";
      return { kind: "Admitted", setCookie: `${this.#cookie}=${this.#session}; ${flags}` };
    }
    const [found, entry] = [this.#found(token), this.#entry];
    const problem = { en: `${found.en}: ${entry.en}`, ja: `${found.ja}。${entry.ja}` };
    return { kind: "Refused", status: 401, problem };
  }

  #spend(token: string): boolean {
    if (this.#token === undefined || !isSame(token, this.#token)) return false;
    this.#spent.push(this.#token);
    this.#token = undefined;
    return true;
  }

  #found(token: string | null): PageText {
    if (token === null) {
      return {
        en: "This browser is not signed in",
        ja: "このブラウザはまだ許可されていません",
      };
    }
    return this.#spent.some((one) => isSame(token, one))
      ? {
          en: "The token in this address has already been used; it opens the board only once",
          ja: "このアドレスのトークンは使用済みです（ボードを開けるのは一度だけ）",
        }
      : {
          en: "The token in this address belongs to another board",
          ja: "このアドレスのトークンはこのボードのものではありません",
        };
  }

  #strange({ method, headers }: GuardedRequest): PageText | undefined {
    const { host = "", origin } = headers;
    if (!this.#hosts.has(host.toLowerCase())) {
      const named = JSON.stringify(host);
      return {
        en: `Cannot serve the host ${named}: the board accepts only 127.0.0.1 and localhost`,
        ja: `ホスト ${named} には応答できません。ボードは 127.0.0.1 と localhost にだけ応答します`,
      };
    }
    if (origin === undefined && method === "POST") {
      return {
        en: "Cannot act: the request names no origin, expected the board's own page",
        ja: "実行できません。リクエストに Origin がなく、ボード自身のページからではありません",
      };
    }
    if (origin !== undefined && origin !== `http://${host}`) {
      const named = JSON.stringify(origin);
      return {
        en: `Cannot serve a page of ${named}: expected the board's own page`,
        ja: `${named} のページには応答できません。ボード自身のページからだけ使えます`,
      };
    }
    const site = headers["sec-fetch-site"];
    const isOwn = site === undefined || site === "same-origin" || site === "none";
    const isFollowed = headers["sec-fetch-mode"] === "navigate" && method === "GET";
    if (isOwn || isFollowed) return undefined;
    return {
      en: "Cannot serve a request of another site's page",
      ja: "他のサイトのページからのリクエストには応答できません",
    };
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

/** Takes equally long for any guess. */
function isSame(given: string, wanted: string): boolean {
  const digest = (text: string) => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(given), digest(wanted));
}
