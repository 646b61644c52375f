import { type AuditCommand, runAudit } from "../../../src/cli/commands/audit.ts";
import { tableOfFiles } from "./audit-yaml.ts";

/** Runs the command on a table of files, and returns its output and exit code. */
export async function auditRun(
  command: Partial<AuditCommand>,
  texts: Readonly<Record<string, string>>,
  live?: readonly unknown[],
) {
  const run = { exit: -1, stdout: "", stderr: "", error: "" };
  const io = {
    ...tableOfFiles(texts),
    stdout: (text: string) => {
      run.stdout += text;
    },
    stderr: (text: string) => {
      run.stderr += text;
    },
    isTty: false,
    colour: false,
    readCluster: live && (async () => ({ objects: live, readBudgets: new Map(), notes: [] })),
  };
  const defaults = {
    files: [],
    from: [],
    platforms: [],
    failOn: "error",
    output: "table",
  } as const;
  try {
    run.exit = await runAudit({ ...defaults, version: "1.2.3", ...command }, io);
  } catch (error) {
    if (!(error instanceof Error && "exitCode" in error)) throw error;
    run.exit = Number(error.exitCode);
    run.error = error.message;
  }
  return run;
}
