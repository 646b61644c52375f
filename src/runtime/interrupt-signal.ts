import { LastcallError } from "../errors.ts";

/** Aborts at the first SIGINT or SIGTERM; at the second the process ends at once with 130. */
export function interruptSignal(): AbortSignal {
  const controller = new AbortController();
  const onSignal = (name: NodeJS.Signals): void => {
    if (controller.signal.aborted) process.exit(130);
    controller.abort(new LastcallError("INTERRUPTED", `Interrupted by ${name}`));
  };
  process.on("SIGINT", onSignal);
  process.on("SIGTERM", onSignal);
  return controller.signal;
}
