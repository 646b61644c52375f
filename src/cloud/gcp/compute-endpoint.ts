import { LastcallError } from "../../errors.ts";

/** Where Compute Engine answers unless `--gcp-endpoint` says otherwise. */
export const defaultComputeEndpoint = "https://compute.googleapis.com";

export interface ComputeEndpoint {
  /** Without a trailing slash; `/compute/v1/…` is appended. */
  readonly baseUrl: string;
  /** Plain HTTP to this machine: our server for tests, or a proxy beside us. */
  readonly loopback: boolean;
}

/**
 * Reads the value of `--gcp-endpoint`, such as `https://compute.example.internal` or
 * `http://127.0.0.1:8090`. A token must never cross a network in clear text, so plain HTTP is taken
 * for loopback only. Throws CONFIG_INVALID.
 */
export function parseComputeEndpoint(text: string): ComputeEndpoint {
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

function invalid(found: string): LastcallError {
  const wanted = "expected an https URL, or http on a loopback address";
  return new LastcallError("CONFIG_INVALID", `Cannot use --gcp-endpoint: ${found}, ${wanted}`);
}
