import type { ControlPlane } from "../support/control-plane.ts";

/** Runs the real kubectl as the administrator; fails the test with kubectl's error. */
export async function mustRun(
  plane: ControlPlane,
  args: readonly string[],
  input?: object,
): Promise<void> {
  const options = input === undefined ? {} : { input: JSON.stringify(input) };
  const { code, stderr } = await plane.kubectl(args, options);
  if (code !== 0) throw new Error(`Cannot run kubectl ${args.join(" ")}: ${stderr}`);
}
