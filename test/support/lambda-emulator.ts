import { type ChildProcess, execFile, spawn } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { freePort } from "./free-port.ts";
import { waitUntil } from "./wait-until.ts";

/** github.com/aws/aws-lambda-runtime-interface-emulator, Apache-2.0, as shipped in aws-sam-cli. */
const release = "1.170.0";
const member = "samcli/local/rapid/aws-lambda-rie-x86_64";

export interface Invocation {
  readonly status: number;
  readonly answer: unknown;
  readonly ms: number;
}

/** AWS's own emulator of Lambda, on loopback, with the bundled responder as its function. */
export class LambdaEmulator {
  readonly #process: ChildProcess;
  readonly #url: string;
  log = "";

  private constructor(started: ChildProcess, url: string) {
    this.#process = started;
    this.#url = url;
    const take = (text: Buffer) => {
      this.log += text.toString();
    };
    started.stdout?.on("data", take);
    started.stderr?.on("data", take);
  }

  static async start(env: Readonly<Record<string, string>>): Promise<LambdaEmulator> {
    const emulator = await install();
    const [port, runtimePort] = [await freePort(), await freePort()];
    const addresses = [
      ...["--runtime-interface-emulator-address", `127.0.0.1:${port}`],
      ...["--runtime-api-address", `127.0.0.1:${runtimePort}`],
    ];
    const runtime = join(import.meta.dirname, "lambda-runtime.mjs");
    const started = spawn(emulator, [...addresses, process.execPath, runtime], {
      env: {
        PATH: process.env.PATH,
        RESPONDER_FILE: join(import.meta.dirname, "../../dist/lambda/index.mjs"),
        AWS_LAMBDA_FUNCTION_TIMEOUT: "60",
        ...env,
      },
      stdio: ["ignore", "pipe", "pipe"],
    });
    const made = new LambdaEmulator(started, `http://127.0.0.1:${port}`);
    await waitUntil(async () => (await fetch(made.#url).catch(() => undefined)) !== undefined, {
      ...{ what: "the emulator of Lambda listens", timeoutMs: 10_000 },
    });
    return made;
  }

  /** Unlike Lambda itself, the emulator responds to events synchronously, too. */
  async invoke(event: unknown): Promise<Invocation> {
    const startedMs = performance.now();
    const response = await fetch(`${this.#url}/2015-03-31/functions/function/invocations`, {
      method: "POST",
      body: JSON.stringify(event),
    });
    const answer: unknown = await response.json();
    return { status: response.status, answer, ms: performance.now() - startedMs };
  }

  /** The times that the emulator reports for the last invocation: process start, then the rest. */
  reported(): readonly number[] {
    const report = this.log.split("\n").findLast((line) => line.includes("REPORT RequestId")) ?? "";
    const part = (name: string) => Number(new RegExp(`\\t${name}: ([\\d.]+) ms`).exec(report)?.[1]);
    return [part("Init Duration"), part("Duration")];
  }

  /** The resident memory of the function's process, in MiB. */
  residentMiB(): number {
    const children = readdirSync("/proc").filter((pid) => /^\d+$/.test(pid));
    const own = children.find((pid) => parentOf(pid) === this.#process.pid);
    const text = own === undefined ? "" : readFileSync(`/proc/${own}/status`, "utf8");
    return Number(/VmRSS:\s+(\d+)/.exec(text)?.[1] ?? Number.NaN) / 1024;
  }

  /** The function's process ends when its runtime no longer responds. */
  async stop(): Promise<void> {
    const { exitCode, signalCode } = this.#process;
    if (exitCode !== null || signalCode !== null) return;
    const ended = new Promise((resolve) => this.#process.once("close", resolve));
    this.#process.kill("SIGTERM");
    await ended;
  }
}

function parentOf(pid: string): number | undefined {
  try {
    return Number(/PPid:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]);
  } catch {
    // It has just ended.
    return undefined;
  }
}

/** Extracts it from the wheel into a cache outside the checkout, once. */
async function install(): Promise<string> {
  const cache = join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "lastcall");
  const home = join(cache, `lambda-emulator-${release}`);
  const emulator = join(home, member);
  if (existsSync(join(home, "complete"))) return emulator;
  mkdirSync(home, { recursive: true });
  const run = promisify(execFile);
  const wheel = `aws-sam-cli==${release}`;
  const program = [
    "import glob, os, sys, zipfile",
    `zipfile.ZipFile(glob.glob(sys.argv[1] + '/*.whl')[0]).extract('${member}', sys.argv[1])`,
    `os.chmod(sys.argv[1] + '/${member}', 0o755)`,
  ].join("\n");
  try {
    const download = ["-m", "pip", "download", "--quiet", "--no-deps", wheel, "-d", home];
    await run("python3", download, { timeout: 300_000 });
    await run("python3", ["-c", program, home], { timeout: 60_000 });
  } catch (error) {
    rmSync(home, { recursive: true, force: true });
    throw new Error(
      `Cannot install the emulator of Lambda into ${home}: ${String(error)}; python3 with pip, and PyPI, are required`,
      { cause: error },
    );
  }
  mkdirSync(join(home, "complete"));
  return emulator;
}
