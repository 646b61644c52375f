import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { CommandIo } from "../../src/cli/command-line/command.ts";
import { runCommandLine } from "../../src/cli/command-line/command-line.ts";
import { seededRng } from "../../src/core/chance/chance.ts";
import { LastcallError } from "../../src/errors.ts";
import { processIo } from "../../src/runtime/process-io.ts";
import { realClock } from "../../src/runtime/real-clock.ts";
import { freePort } from "../support/free-port.ts";

/** Commands that read a cluster and then exit. */
const commands = [
  ["plan"],
  ["drain-plan", "n1"],
  ["depart", "n1"],
  ["depart", "n1", "--dry-run"],
  ["depart", "n1", "--only-actions"],
  ["audit"],
  ["migrate", "estafette"],
  ["migrate", "nth", "--apply"],
  ["setup", "crds", "--apply"],
  ["setup", "admission", "--apply"],
].map((words) => ({ words, command: words.join(" ") }));

let folder: string;
let server: Server;
/**
 * The API server's answer to every request; `Interrupt` interrupts the command instead of
 * answering.
 */
let answer: { readonly status: number; readonly message: string } | "Interrupt";
let interrupt: AbortController;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "lastcall-faults-"));
  server = createServer((_request, response) => {
    if (answer === "Interrupt") {
      interrupt.abort(new LastcallError("INTERRUPTED", "Interrupted by SIGINT"));
      return;
    }
    const { status, message } = answer;
    response.writeHead(status, { "content-type": "application/json" });
    response.end(JSON.stringify({ kind: "Status", apiVersion: "v1", code: status, message }));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
});

afterAll(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  await rm(folder, { recursive: true });
});

function kubeconfig(cluster: object): string {
  return JSON.stringify({
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "c", cluster }],
    users: [{ name: "u", user: { token: "t" } }],
    contexts: [{ name: "x", context: { cluster: "c", user: "u" } }],
    "current-context": "x",
  });
}

async function kubeconfigFor(port: number): Promise<string> {
  const file = join(folder, `kubeconfig-${port}`);
  await writeFile(file, kubeconfig({ server: `http://127.0.0.1:${port}` }));
  return file;
}

function serving(): Promise<string> {
  return kubeconfigFor((server.address() as AddressInfo).port);
}

beforeEach(() => {
  interrupt = new AbortController();
});

async function run(words: readonly string[], env: Readonly<Record<string, string>>) {
  let [out, err] = ["", ""];
  const io: CommandIo = {
    ...processIo(),
    out: (text) => {
      out += text;
    },
    err: (text) => {
      err += text;
    },
    ...{ isTerminal: false, colour: false, columns: 80, env },
    ...{ clock: realClock, rng: seededRng(1), signal: interrupt.signal },
  };
  return { exitCode: await runCommandLine(words, io), out, err };
}

/** One line, printed once, with the remedy. */
function sentence(says: string) {
  return expect.stringMatching(new RegExp(`^lastcall: Cannot [^\\n]*${says}[^\\n]*\\n$`));
}

describe("without a kubeconfig", () => {
  it.each(commands)("$command says where it looked for one", async ({ words }) => {
    expect(await run(words, { HOME: folder })).toEqual({
      ...{ exitCode: 2, out: "" },
      err: sentence("there is no --kubeconfig, no KUBECONFIG, .*set one of them"),
    });
  });
});

describe("with a kubeconfig", () => {
  it.each([
    ["that does not exist", undefined, "no such file"],
    ["that is not YAML", "{{{", "expected a readable kubeconfig"],
    ["of another kind", "hello\n", "current-context is not set"],
    ["without a server", kubeconfig({}), "clusters\\[0\\].cluster.server is missing"],
    [
      "with a missing CA file",
      kubeconfig({ server: "https://127.0.0.1:1", "certificate-authority": "/nowhere/ca.crt" }),
      "/nowhere/ca.crt",
    ],
  ])("%s, the controller does not start, and names the file", async (_, text, says) => {
    const file = join(folder, text === undefined ? "none" : "bad");
    if (text !== undefined) await writeFile(file, text);
    expect(await run(["run", "--kubeconfig", file], {})).toEqual({
      ...{ exitCode: 2, out: "" },
      err: sentence(`${file}.*${says}`),
    });
  });
});

it("with a bad policy file, the controller does not start, and names line and field", async () => {
  const file = join(folder, "policy.yaml");
  const head =
    "apiVersion: lastcall.dev/v1alpha1\nkind: DeparturePolicy\nmetadata:\n  name: spot\n";
  await writeFile(file, `${head}spec:\n  lifetime: {max: 1 day}\n`);
  expect(await run(["run", "--kubeconfig", await serving(), "-f", file], {})).toEqual({
    ...{ exitCode: 2, out: "" },
    err: sentence(
      `${file}:6: spec.lifetime.max: found "1 day" .*, expected a duration such as 90s`,
    ),
  });
});

describe("with nothing listening at the API server's address", () => {
  it.each(commands)("$command names the address", async ({ words }) => {
    const KUBECONFIG = await kubeconfigFor(await freePort());
    expect(await run(words, { KUBECONFIG })).toEqual({
      ...{ exitCode: 1, out: "" },
      err: sentence("no response from http://127.0.0.1:\\d+ \\(connection refused\\), expected "),
    });
  });
});

describe("with an expired token", () => {
  it.each(commands)("$command says that the credentials were rejected", async ({ words }) => {
    answer = { status: 401, message: "Unauthorized" };
    expect(await run(words, { KUBECONFIG: await serving() })).toEqual({
      ...{ exitCode: 1, out: "" },
      err: sentence("the API server rejected the credentials .*, check the kubeconfig"),
    });
  });
});

describe("without the right to read or write", () => {
  it.each(commands)("$command names the missing right", async ({ words }) => {
    answer = { status: 403, message: 'nodes is forbidden: User "u" cannot do that' };
    expect(await run(words, { KUBECONFIG: await serving() })).toEqual({
      ...{ exitCode: 1, out: "" },
      err: sentence("forbidden .*, grant (list|patch) on [a-z.]+"),
    });
  });
});

describe("interrupted while the API server does not respond", () => {
  it.each(commands)("$command exits with 130", async ({ words }) => {
    answer = "Interrupt";
    expect(await run(words, { KUBECONFIG: await serving() })).toEqual({
      ...{ exitCode: 130, out: "" },
      err: sentence("interrupted \\(Interrupted by SIGINT\\)"),
    });
  });
});
