import { spawn } from "node:child_process";
import { text } from "node:stream/consumers";

export interface KubectlCall {
  /** The binary that contains kubectl and the servers. */
  readonly command: string;
  readonly args: readonly string[];
  readonly kubeconfig: string;
  /** Where kubectl caches discovery; it reads nobody's settings. */
  readonly home: string;
  readonly input?: string;
  readonly signal: AbortSignal;
}

export interface KubectlResult {
  readonly stdout: string;
  readonly stderr: string;
  readonly code: number;
}

/** Runs the real kubectl. A nonzero exit code is a normal result, not an exception. */
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
  // kubectl may end without having read its input; its exit code shows that.
  child.stdin.on("error", () => {});
  child.stdin.end(call.input);
  const [stdout, stderr, code] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    ended.promise,
  ]);
  return { stdout, stderr, code };
}
