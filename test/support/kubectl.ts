import { spawn } from "node:child_process";
import { text } from "node:stream/consumers";

export interface KubectlCall {
  /** The binary that holds kubectl beside the servers. */
  readonly command: string;
  readonly args: readonly string[];
  readonly kubeconfig: string;
  /** Where kubectl keeps what it has discovered; nobody's own settings are read. */
  readonly home: string;
  readonly input?: string;
  readonly signal: AbortSignal;
}

export interface KubectlResult {
  readonly stdout: string;
  readonly stderr: string;
  readonly code: number;
}

/** Runs the real kubectl. An exit code other than 0 is a value, not an exception. */
export async function runKubectl(call: KubectlCall): Promise<KubectlResult> {
  const child = spawn(call.command, ["kubectl", `--kubeconfig=${call.kubeconfig}`, ...call.args], {
    cwd: call.home,
    env: { PATH: process.env.PATH, HOME: call.home },
    stdio: "pipe",
    signal: call.signal,
  });
  const ended = Promise.withResolvers<number>();
  child.once("error", (error) => ended.reject(call.signal.aborted ? call.signal.reason : error));
  child.once("close", (code) => ended.resolve(code ?? 1));
  // kubectl may end without having read its input; that it did so shows in its exit code.
  child.stdin.on("error", () => {});
  child.stdin.end(call.input);
  const [stdout, stderr, code] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    ended.promise,
  ]);
  return { stdout, stderr, code };
}
