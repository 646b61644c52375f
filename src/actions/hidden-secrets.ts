import { asJson, asPattern, asXml } from "../core/action/template.ts";

/** What is shorter stands in many a text by chance: only as a word of its own is it the secret. */
const shortestSecret = 6;

/**
 * The secrets that requests carry, and what no sentence may show though a receiver repeats it: the
 * secret, its parts that a receiver sees, and whatever an answer makes of it in its own language.
 */
export class HiddenSecrets {
  readonly #known = new Set<string>();
  readonly #forms = new Set<string>();
  readonly #words: RegExp[] = [];
  /** Longest first: the beginning of a secret may be another one. */
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

  /** A text that is read without those that are long enough to stand in it by intent alone. */
  hide(text: string): string {
    return this.#sorted.reduce((shown, form) => shown.replaceAll(form, "***"), text);
  }

  /** A text that is only shown without any of them. */
  hideAll(text: string): string {
    return this.#words.reduce((shown, word) => shown.replace(word, "***"), this.hide(text));
  }
}

function wordPattern(word: string): RegExp {
  return new RegExp(`(?<![A-Za-z0-9])${asPattern(word)}(?![A-Za-z0-9])`, "g");
}

/** Of an address the parts that a receiver sees. */
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

/** What a credential of HTTP's Basic stands for, and its password. */
function credentialParts(secret: string): readonly string[] {
  if (!/^[A-Za-z0-9+/]{8,}={0,2}$/.test(secret)) return [];
  const plain = Buffer.from(secret, "base64").toString("latin1");
  if (!/^[\x20-\x7e]+$/.test(plain)) return [];
  return [plain, ...(plain.includes(":") ? [plain.slice(plain.indexOf(":") + 1)] : [])];
}

/** As it stands in an address, in a form, in JSON, in XML, and in base64 wherever that begins. */
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

/** What is the same in base64 whatever stands before and behind; `before`: bytes, modulo three. */
function withinBase64(bytes: Buffer, before: number): readonly string[] {
  const all = Buffer.concat([Buffer.alloc(before), bytes]);
  const first = Math.ceil((before * 8) / 6);
  const last = Math.floor((all.length * 8) / 6);
  return ["base64" as const, "base64url" as const].map((name) =>
    all.toString(name).slice(first, last),
  );
}
