import { asJson, asPattern, asXml } from "../core/action/template.ts";

/** Shorter secrets occur in texts by chance, so they are hidden only as separate words. */
const shortestSecret = 6;

/**
 * Hides the secrets of requests in texts, even if a receiver repeats them: the secret, the parts of
 * it that a receiver sees, and their encodings.
 */
export class HiddenSecrets {
  readonly #known = new Set<string>();
  readonly #forms = new Set<string>();
  readonly #words: RegExp[] = [];
  /** Longest first, because one secret may be the prefix of another. */
  #sorted: readonly string[] = [];

  add(secret: string): void {
    if (secret === "" || this.#known.has(secret)) return;
    this.#known.add(secret);
    if (secret.length < shortestSecret) this.#words.push(wordPattern(secret));
    const whole = [secret, ...addressParts(secret), ...credentialParts(secret)];
    for (const one of whole.filter(({ length }) => length >= shortestSecret)) {
      for (const form of formsOf(one)) this.#forms.add(form);
    }
    this.#sorted = [...this.#forms].toSorted((a, b) => b.length - a.length);
  }

  /** Hides only secrets that are too long to occur by chance, in a text that is processed. */
  hide(text: string): string {
    return this.#sorted.reduce((shown, form) => shown.replaceAll(form, "***"), text);
  }

  /** Hides all secrets, in a text that is only shown. */
  hideAll(text: string): string {
    return this.#words.reduce((shown, word) => shown.replace(word, "***"), this.hide(text));
  }
}

function wordPattern(word: string): RegExp {
  return new RegExp(`(?<![A-Za-z0-9])${asPattern(word)}(?![A-Za-z0-9])`, "g");
}

/** The parts of an address that a receiver sees. */
function addressParts(secret: string): readonly string[] {
  const url = URL.parse(secret);
  if (url === null) return [];
  const parts = url.pathname.split("/");
  return [url.pathname, ...parts, ...parts.map(unescaped), ...url.searchParams.values()];
}

function unescaped(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** The decoded user and password of a Basic credential. */
function credentialParts(secret: string): readonly string[] {
  if (!/^[A-Za-z0-9+/]{8,}={0,2}$/.test(secret)) return [];
  const plain = Buffer.from(secret, "base64").toString("latin1");
  if (!/^[\x20-\x7e]+$/.test(plain)) return [];
  return [plain, ...(plain.includes(":") ? [plain.slice(plain.indexOf(":") + 1)] : [])];
}

/** The encodings of a secret: URL, form, JSON, XML, and base64 at any alignment. */
function formsOf(secret: string): readonly string[] {
  const inAddress = encodeURIComponent(secret);
  const lower = inAddress.replace(/%../g, (code) => code.toLowerCase());
  const bytes = Buffer.from(secret);
  return [
    ...[secret, inAddress, lower, inAddress.replaceAll("%20", "+")],
    ...[asJson(secret), asJson(secret).replaceAll("/", "\\/"), asXml(secret)],
    ...[bytes.toString("base64"), bytes.toString("base64url")],
    ...[0, 1, 2].flatMap((before) => withinBase64(bytes, before)),
  ];
}

/** The part of a base64 encoding that is independent of the surrounding bytes. */
function withinBase64(bytes: Buffer, before: number): readonly string[] {
  const all = Buffer.concat([Buffer.alloc(before), bytes]);
  const first = Math.ceil((before * 8) / 6);
  const last = Math.floor((all.length * 8) / 6);
  return ["base64" as const, "base64url" as const].map((name) =>
    all.toString(name).slice(first, last),
  );
}
