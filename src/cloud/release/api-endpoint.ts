import { LastcallError } from "../../errors.ts";

export interface ApiEndpoint {
  /** Without a trailing slash; the API's own path is appended. */
  readonly baseUrl: string;
  /** Plain HTTP to this machine: our server for tests, or a proxy beside us. */
  readonly loopback: boolean;
}

/**
 * Reads the value of an option such as `--gcp-endpoint`: `https://compute.example.internal` or
 * `http://127.0.0.1:8090`. A token must never cross a network in clear text, so plain HTTP is taken
 * for loopback only. Throws CONFIG_INVALID.
 */
export function parseApiEndpoint(option: string, text: string): ApiEndpoint {
  const invalid = (found: string): LastcallError => {
    const wanted = "expected an https URL, or http on a loopback address";
    return new LastcallError("CONFIG_INVALID", `Cannot use ${option}: ${found}, ${wanted}`);
  };
  if (!URL.canParse(text)) throw invalid("found text that is no URL");
  const url = new URL(text);
  // Whoever writes a password into the address would find it in a log: do not repeat the address.
  if (url.username !== "" || url.password !== "") throw invalid("found credentials in the URL");
  if (url.search !== "" || url.hash !== "") throw invalid(`found a query or fragment in ${text}`);
  const loopback = url.protocol === "http:" && isLoopback(url.hostname);
  if (url.protocol !== "https:" && !loopback) throw invalid(`found ${url.origin}`);
  return { baseUrl: url.origin + url.pathname.replace(/\/+$/, ""), loopback };
}

function isLoopback(hostname: string): boolean {
  return hostname === "localhost" || hostname === "[::1]" || /^127(\.\d{1,3}){3}$/.test(hostname);
}
