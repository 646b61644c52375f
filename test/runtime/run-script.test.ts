import { describe, expect, it } from "vitest";
import { runScript } from "../../src/runtime/child-process.ts";

function run(
  script: string,
  onOutput: (text: string) => void = () => {},
  stop?: AbortSignal,
  env: NodeJS.ProcessEnv = process.env,
) {
  const said = { out: "", err: "" };
  const io = {
    out: (text: string) => {
      said.out += text;
      onOutput(text);
    },
    err: (text: string) => {
      said.err += text;
    },
    env,
    signal: stop ?? new AbortController().signal,
  };
  return { said, end: runScript(script, io) };
}

describe("a bash script", () => {
  it("ends successfully, with the output of both streams", async () => {
    const { said, end } = run("echo one; echo two >&2");
    expect(await end).toBe("Ended");
    expect(said).toEqual({ out: "one\n", err: "two\n" });
  });

  it("reports its exit code, or the signal that ended it", async () => {
    expect(await run("exit 7").end).toEqual({ endedBy: "exit code 7" });
    expect(await run("kill -KILL $$").end).toEqual({ endedBy: "SIGKILL" });
  });

  it("is reported as not run if there is no bash", async () => {
    const { end } = run("true", undefined, undefined, { PATH: "/nowhere" });
    expect(await end).toEqual({ notRun: expect.stringContaining("ENOENT") });
  });

  it("has empty standard input, so that no prompt blocks it", async () => {
    const { said, end } = run('read -r answer || echo "nothing to read"');
    expect(await end).toBe("Ended");
    expect(said.out).toBe("nothing to read\n");
  });

  it("is stopped when the signal aborts, with its reason", { timeout: 20_000 }, async () => {
    const reason = new Error("interrupted");
    const stop = new AbortController();
    const { said, end } = run(
      "echo begun; sleep 600; echo over",
      () => stop.abort(reason),
      stop.signal,
    );
    await expect(end).rejects.toBe(reason);
    expect(said.out).toBe("begun\n");
  });
});
