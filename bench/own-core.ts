import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { availableParallelism } from "node:os";

/**
 * Leaves the first core to the processes started so far, which are the control plane, and moves
 * this process to the others, with all that it starts from now on. In a cluster the controller, the
 * API server and the cloud do not share processors either.
 */
export function leaveCoreToControlPlane(): void {
  const last = availableParallelism() - 1;
  for (const pid of childrenOf(process.pid)) pin(pid, "0");
  pin(process.pid, last === 1 ? "1" : `1-${last}`);
}

function childrenOf(pid: number): readonly number[] {
  return readdirSync(`/proc/${pid}/task`).flatMap((thread) =>
    readFileSync(`/proc/${pid}/task/${thread}/children`, "utf8")
      .split(" ")
      .filter((child) => child.trim() !== "")
      .flatMap((child) => [Number(child), ...childrenOf(Number(child))]),
  );
}

/** Moves all threads of a process to the given cores. */
function pin(pid: number, cores: string): void {
  execFileSync("taskset", ["-acp", cores, String(pid)], { stdio: "ignore" });
}
