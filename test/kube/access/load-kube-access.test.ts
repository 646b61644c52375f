import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { loadKubeAccess } from "../../../src/kube/access/load-kube-access.ts";

let dir: string;

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "kubeconfig-"));
});

afterEach(() => {
  rmSync(dir, { recursive: true, force: true });
});

function write(name: string, text: string): string {
  const file = join(dir, name);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
  return file;
}

interface Shape {
  readonly name: string;
  readonly server?: string;
  readonly user?: string;
  readonly namespace?: string;
}

/** A kubeconfig with one context, cluster and user, all of the same name. */
function kubeconfig({ name, server, user = "{token: t0}", namespace }: Shape): string {
  return `
apiVersion: v1
kind: Config
current-context: ${name}
clusters: [{name: ${name}, cluster: {server: "${server ?? `https://${name}:6443`}"}}]
users: [{name: ${name}, user: ${user}}]
contexts: [{name: ${name}, context: {cluster: ${name}, user: ${name}${namespace ? `, namespace: ${namespace}` : ""}}}]
`;
}

function serviceAccount(token = "pod-token"): string {
  write("account/token", token);
  write("account/ca.crt", "the CA");
  write("account/namespace", "lastcall-system\n");
  return join(dir, "account");
}

const podEnv = { KUBERNETES_SERVICE_HOST: "10.0.0.1", KUBERNETES_SERVICE_PORT: "443" };

describe("the search for a cluster", () => {
  it("tries the given file, KUBECONFIG, the service account and the home directory, in this order", async () => {
    const named = write("named", kubeconfig({ name: "named" }));
    const listed = write("listed", kubeconfig({ name: "listed" }));
    write("home/.kube/config", kubeconfig({ name: "home" }));
    const serviceAccountDir = serviceAccount();
    const HOME = join(dir, "home");
    const env = { HOME, KUBECONFIG: listed, ...podEnv };
    const server = async (source: Parameters<typeof loadKubeAccess>[0]) =>
      (await loadKubeAccess(source)).server;
    expect(await server({ kubeconfig: named, env, serviceAccountDir })).toBe("https://named:6443");
    expect(await server({ env, serviceAccountDir })).toBe("https://listed:6443");
    const { KUBECONFIG: _, ...withoutList } = env;
    expect(await server({ env: withoutList, serviceAccountDir })).toBe("https://10.0.0.1:443");
    expect(await server({ env: { HOME }, serviceAccountDir })).toBe("https://home:6443");
    const context = "home";
    expect(await server({ context, env: withoutList, serviceAccountDir })).toBe(
      "https://home:6443",
    );
  });

  it("never falls back to localhost", async () => {
    await expect(loadKubeAccess({ env: { HOME: dir } })).rejects.toMatchObject({
      code: "KUBECONFIG_INVALID",
      exitCode: 2,
      message: `Cannot find a cluster: there is no --kubeconfig, no KUBECONFIG, no service account and no file ${join(dir, ".kube", "config")}, set one of them`,
    });
  });

  it("accepts an IPv6 address of the API server", async () => {
    const env = { ...podEnv, KUBERNETES_SERVICE_HOST: "fd00::1" };
    const access = await loadKubeAccess({ env, serviceAccountDir: serviceAccount() });
    expect(access.server).toBe("https://[fd00::1]:443");
  });
});

describe("the pod's service account", () => {
  it("rereads token and CA each time, and provides the namespace", async () => {
    const access = await loadKubeAccess({
      env: podEnv,
      serviceAccountDir: serviceAccount("one\n"),
    });
    expect(access.namespace).toBe("lastcall-system");
    expect(await access.credentials()).toEqual({
      headers: { authorization: "Bearer one" },
      tls: { ca: "the CA" },
    });
    serviceAccount("two");
    expect((await access.credentials()).headers).toEqual({ authorization: "Bearer two" });
  });

  it("names a file that cannot be read", async () => {
    const account = serviceAccount();
    const access = await loadKubeAccess({ env: podEnv, serviceAccountDir: account });
    rmSync(join(account, "ca.crt"));
    await expect(access.credentials()).rejects.toMatchObject({
      code: "KUBECONFIG_INVALID",
      message: expect.stringContaining(join(account, "ca.crt")),
    });
  });
});

describe("several files in KUBECONFIG", () => {
  it("are merged: the first of two entries of one name wins, and missing files are skipped", async () => {
    const first = write(
      "a",
      kubeconfig({ name: "x", server: "https://first:1", namespace: "ns1" }),
    );
    const second = write(
      "b",
      kubeconfig({ name: "x", server: "https://second:2" }) +
        kubeconfig({ name: "y" }).replace(/apiVersion[\s\S]*/, ""),
    );
    const third = write("c", kubeconfig({ name: "y", server: "https://third:3" }));
    const KUBECONFIG = [join(dir, "absent"), first, second, third].join(":");
    const access = await loadKubeAccess({ env: { KUBECONFIG } });
    expect([access.context, access.server]).toEqual(["x", "https://first:1"]);
    expect(access.namespace).toBe("ns1");
    const other = await loadKubeAccess({ context: "y", env: { KUBECONFIG } });
    expect(other.server).toBe("https://third:3");
  });

  it("are named if none of them exists", async () => {
    const KUBECONFIG = join(dir, "absent");
    await expect(loadKubeAccess({ env: { KUBECONFIG } })).rejects.toThrow(
      `KUBECONFIG names ${KUBECONFIG}, which does not exist`,
    );
  });
});

describe("an unusable kubeconfig", () => {
  it.each([
    ["is not YAML", "clusters: [}", /unexpected|flow/i],
    ["is empty", "", /empty/],
    ["is null", "null", /it is not a kubeconfig/],
    ["is empty", "", /: it is empty, expected a readable kubeconfig/],
    [
      "has no current context",
      kubeconfig({ name: "x" }).replace(/current.*/, ""),
      /current-context is not set/,
    ],
    [
      "has no context of that name",
      kubeconfig({ name: "x" }).replace("current-context: x", "current-context: y"),
      /it has no context y, expected one of its contexts \(x\)/,
    ],
    [
      "has a cluster without a server",
      kubeconfig({ name: "x" }).replace(/server: "[^"]*"/, "x: y"),
      /clusters\[0\].cluster.server is missing/,
    ],
    [
      "has a context with a missing cluster",
      kubeconfig({ name: "x" }).replace("cluster: x", "cluster: z"),
      /context x names the cluster z/,
    ],
    [
      "has a context with a missing user",
      kubeconfig({ name: "x" }).replace("user: x", "user: z"),
      /context x names the user z/,
    ],
    [
      "has a server that is not a URL",
      kubeconfig({ name: "x", server: "example:6443" }),
      /clusters x: server is example:6443, expected an http\(s\) URL/,
    ],
    [
      "names a missing certificate file",
      kubeconfig({ name: "x", user: "{client-certificate: me.crt}" }),
      /users x: client-certificate names .*me\.crt, which cannot be read/,
    ],
    [
      "names a missing token file",
      kubeconfig({ name: "x", user: "{tokenFile: me.token}" }),
      /users x: tokenFile names .*me\.token, which cannot be read/,
    ],
  ])("because it %s is rejected with its path and the reason", async (_, text, words) => {
    const file = write("config", text);
    const failed = loadKubeAccess({ kubeconfig: file, env: {} });
    await expect(failed).rejects.toMatchObject({
      code: "KUBECONFIG_INVALID",
      message: expect.stringMatching(words),
    });
    await expect(failed).rejects.toThrow(`Cannot use the kubeconfig ${file}: `);
  });

  it("because it does not exist is rejected, too", async () => {
    const file = join(dir, "absent");
    const failed = loadKubeAccess({ kubeconfig: file, env: {} });
    await expect(failed).rejects.toMatchObject({ code: "KUBECONFIG_INVALID" });
    await expect(failed).rejects.toThrow(file);
  });
});

describe("the credentials of a kubeconfig", () => {
  it("are token, CA and server name", async () => {
    const ca = Buffer.from("the CA").toString("base64");
    const text = kubeconfig({ name: "x" }).replace(
      "server:",
      `certificate-authority-data: ${ca}, tls-server-name: api.example, server:`,
    );
    const access = await loadKubeAccess({ kubeconfig: write("config", text), env: {} });
    const { headers, tls } = await access.credentials();
    expect(headers).toEqual({ authorization: "Bearer t0" });
    expect(tls.ca?.toString()).toBe("the CA");
    expect(tls.servername).toBe("api.example");
  });

  it("include the CA for a context without a user", async () => {
    const text = kubeconfig({ name: "x" })
      .replace(", user: x", "")
      .replace("server:", `certificate-authority-data: ${btoa("the CA")}, server:`);
    const access = await loadKubeAccess({ kubeconfig: write("config", text), env: {} });
    const { headers, tls } = await access.credentials();
    expect(headers).toEqual({});
    expect(tls.ca?.toString()).toBe("the CA");
  });

  it("work with a plain HTTP server", async () => {
    const text = kubeconfig({ name: "x", server: "http://127.0.0.1:8001" });
    const access = await loadKubeAccess({ kubeconfig: write("config", text), env: {} });
    expect((await access.credentials()).headers).toEqual({ authorization: "Bearer t0" });
  });

  it("are read from the file again by a reload", async () => {
    const file = write("config", kubeconfig({ name: "x" }));
    const access = await loadKubeAccess({ kubeconfig: file, env: {} });
    write("config", kubeconfig({ name: "x", user: "{token: t1}" }));
    expect((await access.credentials()).headers).toEqual({ authorization: "Bearer t0" });
    await access.reload();
    expect((await access.credentials()).headers).toEqual({ authorization: "Bearer t1" });
  });

  describe("with a tokenFile", () => {
    const loadWith = (user: string) =>
      loadKubeAccess({
        kubeconfig: write("config", kubeconfig({ name: "x", user })),
        env: {},
      });

    it.each([
      ["alone", "{tokenFile: tokens/me}"],
      ["and a token, over which it takes precedence", "{token: t0, tokenFile: tokens/me}"],
    ])("%s come from that file, which is read again each time", async (_, user) => {
      write("tokens/me", "one\n");
      const access = await loadWith(user);
      expect((await access.credentials()).headers).toEqual({ authorization: "Bearer one" });
      write("tokens/me", "two\n");
      expect((await access.credentials()).headers).toEqual({ authorization: "Bearer two" });
    });

    it("that is missing or empty come from the token, if there is one", async () => {
      const access = await loadWith("{token: t0, tokenFile: tokens/me}");
      expect((await access.credentials()).headers).toEqual({ authorization: "Bearer t0" });
      write("tokens/me", "\n");
      expect((await access.credentials()).headers).toEqual({ authorization: "Bearer t0" });
    });

    it.each([
      ["has vanished", () => rmSync(join(dir, "tokens/me")), "which cannot be read, expected a"],
      ["has become empty", () => write("tokens/me", "\n"), "which is empty, expected a token"],
    ])("that %s are an error that names file and user", async (_, change, words) => {
      write("tokens/me", "one");
      const access = await loadWith("{tokenFile: tokens/me}");
      change();
      const error = {
        code: "KUBECONFIG_INVALID",
        message: expect.stringContaining(
          `users x: tokenFile names ${join(dir, "tokens/me")}, ${words}`,
        ),
      };
      await expect(access.credentials()).rejects.toMatchObject(error);
      await expect(access.reload()).rejects.toMatchObject(error);
    });
  });

  function execUser(command: string): string {
    const args = JSON.stringify(["-e", command]);
    return `{exec: {apiVersion: client.authentication.k8s.io/v1, command: ${JSON.stringify(process.execPath)}, args: ${args}}}`;
  }

  it("come from an exec plugin, which runs again after a reload", async () => {
    const counter = write("count", "");
    const command = `const fs=require("fs");fs.appendFileSync(${JSON.stringify(counter)},"x");console.log(JSON.stringify({status:{token:"exec-"+fs.readFileSync(${JSON.stringify(counter)},"utf8").length}}))`;
    const text = kubeconfig({ name: "x", user: execUser(command) });
    const access = await loadKubeAccess({ kubeconfig: write("config", text), env: {} });
    expect((await access.credentials()).headers).toEqual({ authorization: "Bearer exec-1" });
    expect((await access.credentials()).headers).toEqual({ authorization: "Bearer exec-1" });
    await access.reload();
    expect((await access.credentials()).headers).toEqual({ authorization: "Bearer exec-2" });
  });

  it("cannot come from a plugin that is not installed: the error has its installHint", async () => {
    const hint = "installHint: Install gke-plugin for use with kubectl";
    const exec = `apiVersion: client.authentication.k8s.io/v1, command: gke-plugin, ${hint}`;
    const file = write("config", kubeconfig({ name: "x", user: `{exec: {${exec}}}` }));
    const access = await loadKubeAccess({ kubeconfig: file, env: {} });
    await expect(access.credentials()).rejects.toMatchObject({
      code: "API_UNAUTHORIZED",
      message: `Cannot get credentials of the user x in ${file}: its plugin gke-plugin is not installed, expected it on the PATH (Install gke-plugin for use with kubectl)`,
    });
  });

  it("cannot come from a plugin that fails: the error has its message", async () => {
    const text = kubeconfig({
      name: "x",
      user: execUser('console.error("please log in");process.exit(1)'),
    });
    const file = write("config", text);
    const access = await loadKubeAccess({ kubeconfig: file, env: {} });
    await expect(access.credentials()).rejects.toMatchObject({
      code: "API_UNAUTHORIZED",
      message: `Cannot get credentials of the user x in ${file}: please log in, expected a working plugin or identity provider`,
    });
  });
});
