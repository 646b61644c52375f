import { describe, expect, it } from "vitest";
import { parseComputeEndpoint } from "../../../src/cloud/gcp/compute-endpoint.ts";

describe("an endpoint", () => {
  it.each([
    ["https://compute.googleapis.com", "https://compute.googleapis.com", false],
    ["https://compute.googleapis.com/", "https://compute.googleapis.com", false],
    ["https://proxy.internal:8443/gce/", "https://proxy.internal:8443/gce", false],
    ["http://127.0.0.1:8090", "http://127.0.0.1:8090", true],
    ["http://localhost:8090/", "http://localhost:8090", true],
    ["http://[::1]:8090", "http://[::1]:8090", true],
    ["https://127.0.0.1:8443", "https://127.0.0.1:8443", false],
  ])("%s is taken as %s, plain loopback: %s", (text, baseUrl, loopback) => {
    expect(parseComputeEndpoint(text)).toEqual({ baseUrl, loopback });
  });

  it.each([
    "",
    "compute.googleapis.com",
    "ftp://127.0.0.1",
    "http://compute.googleapis.com",
    "http://127.0.0.1.example.com",
    "http://localhost.example.com",
    "https://host/?key=1",
  ])("%j is refused, since a token would cross a network in clear text or go nowhere", (text) => {
    expect(() => parseComputeEndpoint(text)).toThrow(
      /^Cannot use --gcp-endpoint: found .*, expected an https URL, or http on a loopback address$/,
    );
  });

  it("with a password in it is refused without repeating it", () => {
    const parse = () => parseComputeEndpoint("https://me:hunter2@compute.googleapis.com");
    expect(parse).toThrow("found credentials in the URL");
    expect(parse).not.toThrow("hunter2");
  });
});
