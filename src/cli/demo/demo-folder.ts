import { createHash } from "node:crypto";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { LastcallError, messageOf } from "../../errors.ts";
import type { TemporaryFile } from "../command-line/command-io.ts";

/**
 * Such as `lastcall-demo-4c1e-`. Machines and containers may share a folder for temporary files,
 * but not their process ids; short, because people copy the path off a terminal.
 */
export function folderPrefix(host: string): string {
  return `lastcall-demo-${createHash("sha256").update(host).digest("hex").slice(0, 4)}-`;
}

/**
 * Writes a file that only this user may read, in a new folder. The folder goes at `remove` and
 * however else the process ends by itself: nothing here waits, so there is no moment in which it is
 * there and would stay. What SIGKILL or a power cut leaves behind goes when the next demo starts.
 * Throws OUTPUT_UNWRITABLE.
 */
export function writeDemoFile(name: string, text: string): TemporaryFile {
  const folder = newFolder();
  const removeNow = (): void => rmSync(folder, { recursive: true, force: true });
  process.on("exit", removeNow);
  const path = join(folder, name);
  writeFileSync(path, text, { mode: 0o600 });
  return {
    path,
    remove: async () => {
      process.off("exit", removeNow);
      removeNow();
    },
  };
}

function newFolder(): string {
  try {
    sweepDeadFolders();
    return mkdtempSync(join(tmpdir(), `${folderPrefix(hostname())}${process.pid}-`));
  } catch (error) {
    throw new LastcallError(
      "OUTPUT_UNWRITABLE",
      `Cannot write the kubeconfig to ${tmpdir()}: ${messageOf(error)}, set TMPDIR to a folder that you may write to`,
    );
  }
}

function sweepDeadFolders(): void {
  const prefix = folderPrefix(hostname());
  for (const name of readdirSync(tmpdir())) {
    const pid = name.startsWith(prefix) ? pidOf(name.slice(prefix.length)) : undefined;
    if (pid === undefined || isAlive(pid)) continue;
    try {
      rmSync(join(tmpdir(), name), { recursive: true, force: true });
    } catch {
      // Another user's: theirs to take away, and nothing to fail at.
    }
  }
}

/** Of `4711-Ab3dEf`; undefined for a name that we did not give. */
function pidOf(rest: string): number | undefined {
  const found = /^([1-9]\d*)-\w{6}$/.exec(rest);
  return found === null ? undefined : Number(found[1]);
}

/** Signal 0 only asks; of another user's process the answer is that it may not be signalled. */
function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
