import { type ApiEndpoint, parseApiEndpoint } from "../release/api-endpoint.ts";

/** Where Compute Engine answers unless `--gcp-endpoint` says otherwise. */
export const defaultComputeEndpoint = "https://compute.googleapis.com";

/** `/compute/v1/…` is appended to its base. */
export type ComputeEndpoint = ApiEndpoint;

/** Reads the value of `--gcp-endpoint`. Throws CONFIG_INVALID. */
export function parseComputeEndpoint(text: string): ComputeEndpoint {
  return parseApiEndpoint("--gcp-endpoint", text);
}
