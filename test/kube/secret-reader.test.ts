import { describe, expect, it } from "vitest";
import type { KubeAnswer, KubeApi, KubeRequest } from "../../src/contracts/kube-api.ts";
import { KubeSecretReader, machineAddresses } from "../../src/kube/action-source.ts";

const signal = new AbortController().signal;

function apiOf(answer: (request: KubeRequest) => KubeAnswer): KubeApi {
  return { send: async (request: KubeRequest) => answer(request) } as unknown as KubeApi;
}

describe("a Secret of an action", () => {
  const ref = { name: "lastcall-actions", key: "slack" };

  function read(status: number, body: unknown = {}): Promise<string> {
    const api = apiOf(({ path }) => {
      expect(path).toBe("/api/v1/namespaces/lastcall/secrets/lastcall-actions");
      return { status, body } as KubeAnswer;
    });
    return new KubeSecretReader(api, "lastcall").read(ref, signal);
  }

  it("is read by its key from Lastcall's namespace", async () => {
    expect(await read(200, { data: { slack: btoa("xoxb-1"), other: btoa("no") } })).toBe("xoxb-1");
  });

  it.each([
    [404, {}, "there is no such Secret, create it, or choose another namespace with -n"],
    [403, {}, "reading it is forbidden, grant get on it (docs/actions.md)"],
    [200, { data: { other: "eA==" } }, "the Secret has no such key, add it"],
    [200, {}, "the Secret has no such key, add it"],
  ])("is missing after a response of %i and %j", async (status, body, why) => {
    await expect(read(status, body)).rejects.toMatchObject({
      code: "SECRET_MISSING",
      message: `Cannot read the key slack of Secret lastcall/lastcall-actions: ${why}`,
    });
  });

  it("may be available later if the API server is busy", async () => {
    await expect(read(503)).rejects.toMatchObject({ retryable: true });
  });
});

describe("the addresses of a machine", () => {
  it("are its own and those of its pods, except pods on the host network", async () => {
    const pod = (ips: readonly string[], hostNetwork = false) => ({
      spec: { hostNetwork },
      status: { podIPs: ips.map((ip) => ({ ip })) },
    });
    const items = [pod(["10.0.1.17", "fd00::17"]), pod(["10.0.1.5"], true), pod([])];
    const addresses = [
      { type: "InternalIP", address: "10.0.1.5" },
      { type: "Hostname", address: "n1" },
    ];
    const api = apiOf(({ path, query }) => {
      if (path === "/api/v1/nodes/n1") {
        return { status: 200, body: { status: { addresses } } } as unknown as KubeAnswer;
      }
      expect(query).toEqual({ fieldSelector: "spec.nodeName=n1" });
      return { status: 200, body: { items } } as unknown as KubeAnswer;
    });
    expect(await machineAddresses(api, "n1", signal)).toEqual({
      node: ["10.0.1.5"],
      pods: ["10.0.1.17", "fd00::17"],
    });
  });

  it("are unknown if its node is gone", async () => {
    const api = apiOf(() => ({ status: 404, body: {} }) as KubeAnswer);
    await expect(machineAddresses(api, "n1", signal)).rejects.toMatchObject({
      code: "ACTION_TARGET_UNKNOWN",
    });
  });
});
