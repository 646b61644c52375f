import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { nodeOfToken } from "../../src/agent/account-api.ts";
import { ImdsSession } from "../../src/cloud/aws/notice-source.ts";
import { readNoticeDuration } from "../../src/cloud/gcp/notice-source.ts";
import type { MetadataAnswer } from "../../src/cloud/metadata/metadata-client.ts";
import type { MetadataRequest } from "../../src/contracts/metadata.ts";
import { cloudTime, instant, parseHttpDate } from "../../src/core/time/time.ts";
import { isLastcallError } from "../../src/errors.ts";
import { translateLease } from "../../src/kube/lease/lease-store.ts";
import { foreignText } from "../support/foreign-text.ts";
import { ManualClock } from "../support/manual-clock.ts";

const seed = 20_261_123;

function tokenOf(claims: string): string {
  return `header.${Buffer.from(claims).toString("base64url")}.signature`;
}

const claims = JSON.stringify({
  sub: "system:serviceaccount:lastcall:lastcall-agent",
  "kubernetes.io": { node: { name: "n1", uid: "0123-4567" }, pod: { name: "p" } },
});

describe("for any input", () => {
  it("a token's node claim is read as a name and a uid, or not at all", () => {
    const whole = foreignText([tokenOf(claims)]);
    const inside = foreignText([claims]).map(tokenOf);
    fc.assert(
      fc.property(fc.oneof(whole, inside), (token) => {
        const node = nodeOfToken(token);
        if (node === undefined) return;
        expect(typeof node.name === "string" && node.name !== "").toBe(true);
        expect(typeof node.uid === "string" && node.uid !== "").toBe(true);
      }),
      { seed, numRuns: 3000 },
    );
  });

  it("a Date header is read as an instant, or the local clock is used", () => {
    const receivedAt = instant(Date.UTC(2026, 10, 20));
    fc.assert(
      fc.property(foreignText(["Fri, 20 Nov 2026 00:00:05 GMT"]), (text) => {
        const dateAt = parseHttpDate(text);
        const at = cloudTime({ dateAt, receivedAt });
        expect(Number.isSafeInteger(at)).toBe(true);
        if (dateAt === undefined) expect(at).toBe(receivedAt);
      }),
      { seed, numRuns: 3000 },
    );
  });

  it("a machine's own notice duration is read as one second to ten minutes, or not at all", () => {
    fc.assert(
      fc.property(foreignText(["120s", "2m", "1h", "999999h", "-5s"]), (text) => {
        const span = readNoticeDuration(text);
        if (span === undefined) return;
        expect(span).toBeGreaterThanOrEqual(1000);
        expect(span).toBeLessThanOrEqual(600_000);
      }),
      { seed, numRuns: 3000 },
    );
  });

  it("a Lease is read with a positive duration", () => {
    const field = fc.oneof(fc.jsonValue({ maxDepth: 1 }), fc.constant(undefined));
    const foreign = fc.record({
      metadata: fc.oneof(field, fc.record({ uid: field, resourceVersion: field, labels: field })),
      spec: fc.oneof(
        field,
        fc.record({ holderIdentity: field, leaseDurationSeconds: field, leaseTransitions: field }),
      ),
    });
    fc.assert(
      fc.property(foreign, (lease) => {
        const record = translateLease(lease as never);
        expect(record.durationMs).toBeGreaterThan(0);
        expect(typeof record.resourceVersion).toBe("string");
        expect(["string", "undefined"]).toContain(typeof record.holder);
        expect(typeof record.transitions).toBe("number");
      }),
      { seed, numRuns: 3000 },
    );
  });

  it("a token of the metadata service is sent as one printable word, or not at all", async () => {
    const ttl = fc.oneof(fc.string(), fc.constantFrom("21600", "-1", "0", "1e99", "NaN", ""));
    await fc.assert(
      fc.asyncProperty(foreignText(["AQAEAKw=="]), ttl, async (text, lifeSeconds) => {
        const sent: string[] = [];
        const ask = async ({ path, headers }: MetadataRequest): Promise<MetadataAnswer> => {
          if (path !== "/latest/api/token") sent.push(headers?.["x-aws-ec2-metadata-token"] ?? "");
          return { status: 200, text, header: () => lifeSeconds } as unknown as MetadataAnswer;
        };
        const session = new ImdsSession({ ask } as never, new ManualClock());
        const signal = new AbortController().signal;
        const answer = await session.get("/latest/meta-data/x", signal).catch((error) => error);
        if (isLastcallError(answer)) {
          expect(answer.message.length).toBeLessThan(300);
          expect(sent).toEqual([]);
        } else expect(sent.every((token) => /^[\x21-\x7e]{1,1024}$/.test(token))).toBe(true);
      }),
      { seed, numRuns: 1000 },
    );
  });
});
