import { afterEach, describe, expect, it } from "vitest";
import { detectCloud } from "../../../src/cloud/detect-cloud.ts";
import { instant } from "../../../src/core/time/time.ts";
import { realClock } from "../../../src/runtime/real-clock.ts";
import { AwsMetadataServer } from "../../support/aws-metadata-server.ts";
import { AzureMetadataServer } from "../../support/azure-metadata-server.ts";
import { GcpMetadataServer } from "../../support/gcp-metadata-server.ts";
import { illnesses, type MetadataServer } from "../../support/metadata-server.ts";
import { ScaledClock } from "../../support/scaled-clock.ts";

const clock = new ScaledClock({ startAt: instant(Date.UTC(2026, 10, 20)), speed: 10 });
const never = new AbortController().signal;
let server: MetadataServer | undefined;

afterEach(() => server?.stop());

const servers = [
  ["aws", AwsMetadataServer],
  ["gcp", GcpMetadataServer],
  ["azure", AzureMetadataServer],
] as const;

describe("cloud detection", () => {
  it.each(servers)("recognizes %s by its own response", async (cloud, Server) => {
    server = await new Server(() => clock.now()).start();
    // By the real clock: on a busy machine a tenth of a timeout is too short for a response.
    const patient = { baseUrl: server.url, fetch, clock: realClock };
    expect(await detectCloud(patient, never)).toBe(cloud);
  });

  it.each(illnesses)("takes a faulty service for no cloud: %s", async (illness) => {
    server = await new AwsMetadataServer(() => clock.now()).start();
    server.fallIll(illness);
    expect(await detectCloud({ baseUrl: server.url, fetch, clock }, never)).toBeUndefined();
  });

  it("finds no cloud if nothing listens", async () => {
    server = await new AwsMetadataServer(() => clock.now()).start();
    const baseUrl = server.url;
    await server.stop();
    expect(await detectCloud({ baseUrl, fetch, clock }, never)).toBeUndefined();
  });

  it("fails with its signal's reason", async () => {
    const ended = AbortSignal.abort(new Error("enough"));
    const asked = detectCloud({ baseUrl: "http://127.0.0.1:9", fetch, clock }, ended);
    await expect(asked).rejects.toThrow("enough");
  });
});
