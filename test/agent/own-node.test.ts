import { describe, expect, it } from "vitest";
import { nodeOfToken, ownUid } from "../../src/agent/account-api.ts";

function tokenOf(claims: unknown): string {
  const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");
  return `${part({ alg: "RS256" })}.${part(claims)}.signature`;
}

/** The claims of a pod's token in Kubernetes 1.30 and later (KEP-4193). */
const claims = {
  aud: ["https://kubernetes.default.svc"],
  "kubernetes.io": {
    namespace: "lastcall",
    node: { name: "nöde-1", uid: "0b1f7a3e-7f0e-4a51-8a4e-3f8a6c1d2e3f" },
    pod: { name: "lastcall-agent-x", uid: "p" },
    serviceaccount: { name: "lastcall-agent", uid: "s" },
  },
};

describe("the node of a service account token", () => {
  it("is read from its claims, in UTF-8", () => {
    expect(nodeOfToken(tokenOf(claims))).toEqual(claims["kubernetes.io"].node);
    expect(ownUid(tokenOf(claims), "nöde-1")).toBe(claims["kubernetes.io"].node.uid);
  });

  it.each(["", "a.b", "a.!!!.c", tokenOf(null), tokenOf({ "kubernetes.io": { node: "n1" } })])(
    "is not found in %j",
    (token) => {
      expect(nodeOfToken(token)).toBeUndefined();
    },
  );

  it("is required, and must be the node that --node-name names", () => {
    expect(() => ownUid(tokenOf({}), "n1")).toThrow(/names no node.*Kubernetes 1\.30/);
    expect(() => ownUid(tokenOf(claims), "n2")).toThrow(/bound to nöde-1, --node-name must be/);
  });
});
