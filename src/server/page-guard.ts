import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import type { PageText } from "../contracts/http-route.ts";
import { hours, type Instant, plus } from "../core/time/time.ts";

export interface GuardedRequest {
  readonly method: string;
  readonly headers: IncomingHttpHeaders;
  readonly token: string | null;
  readonly pathname: string;
}

export type Admission =
  | {
      readonly kind: "Admitted";
      /** Below the board's own path; `/` is the page. */
      readonly path: string;
      readonly setCookie?: string | undefined;
      /** Whether the browser is still in: a stream may outlast its access. */
      readonly stands: () => boolean;
    }
  | { readonly kind: "Refused"; readonly status: number; readonly problem: PageText };

export interface PageGuardOptions {
  readonly port: number;
  /** Explains how to get an address, for visitors without one. */
  readonly entry: PageText;
  readonly now: () => Instant;
}

const cookieName = "lastcall-board";
/** How long a browser stays in. */
const accessMs = hours(7 * 24);

/** 96 bits each: with a path and a token, the printed address still fits into a terminal's line. */
const addressPartBytes = 12;
const sessionBytes = 24;

interface Session {
  readonly secret: string;
  readonly endsAt: Instant;
}

/**
 * Decides who may see the board: a browser that opened a printed address, whose token is valid once
 * and exchanged for a cookie. A token exists only once an address has been requested. Pages of
 * other sites, or of a name that was pointed at loopback, are refused, whatever cookies the browser
 * sends along.
 *
 * Everything is below a random path. Browsers send a cookie to every port of its host, but only at
 * its path, which no other server on this machine knows.
 */
export class PageGuard {
  /** Begins with a slash, and ends without one. */
  readonly #base = `/${secret(addressPartBytes)}`;
  readonly #hosts: ReadonlySet<string>;
  readonly #entry: PageText;
  readonly #now: () => Instant;
  #sessions: readonly Session[] = [];
  #token: string | undefined;
  readonly #spent: string[] = [];

  constructor({ port, entry, now }: PageGuardOptions) {
    this.#entry = entry;
    this.#now = now;
    this.#hosts = new Set(["127.0.0.1", "localhost", "[::1]"].map((host) => `${host}:${port}`));
  }

  /** The path and token that let one browser in; the same until they have been used. */
  entrance(): string {
    this.#token ??= secret(addressPartBytes);
    return `${this.#base}/?token=${this.#token}`;
  }

  admit(request: GuardedRequest): Admission {
    const refused = this.#strange(request);
    if (refused !== undefined) return { kind: "Refused", status: 403, problem: refused };
    const { pathname, token, method } = request;
    const isOwn = pathname.startsWith(`${this.#base}/`);
    const path = isOwn ? pathname.slice(this.#base.length) : undefined;
    const stands = () => this.#hasSession(request.headers);
    if (path !== undefined && stands()) return { kind: "Admitted", path, stands };
    // A HEAD request, such as from a program that previews an address, does not use up the token.
    if (path === "/" && method === "GET" && token !== null && this.#spend(token)) {
      return { kind: "Admitted", path, setCookie: this.#newCookie(), stands };
    }
    const [found, entry] = [this.#found(token), this.#entry];
    const problem = { en: `${found.en}: ${entry.en}`, ja: `${found.ja}。${entry.ja}` };
    return { kind: "Refused", status: 401, problem };
  }

  #newCookie(): string {
    const session = { secret: secret(sessionBytes), endsAt: plus(this.#now(), accessMs) };
    this.#sessions = [...this.#valid(), session];
    const flags = `Path=${this.#base}/; Max-Age=${accessMs / 1000}; HttpOnly; SameSite=Strict`;
    return `${cookieName}=${session.secret}; ${flags}`;
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
    const sessions = this.#valid();
    return cookie.split(";").some((pair) => {
      const [name, value = ""] = pair.trim().split("=");
      return name === cookieName && sessions.some(({ secret }) => isSame(value, secret));
    });
  }

  #valid(): readonly Session[] {
    const now = this.#now();
    return this.#sessions.filter(({ endsAt }) => now < endsAt);
  }
}

function secret(bytes: number): string {
  return randomBytes(bytes).toString("base64url");
}

/** Takes equally long for any guess. */
function isSame(given: string, wanted: string): boolean {
  const digest = (text: string) => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(given), digest(wanted));
}
