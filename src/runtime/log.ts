import type { Clock } from "../contracts/clock.ts";
import type { Log, LogFields } from "../contracts/telemetry.ts";
import { formatInstant } from "../core/time/time.ts";

const logLevels = ["debug", "info", "warn", "error"] as const;
export type LogLevel = (typeof logLevels)[number];

export interface LogOptions {
  readonly level: LogLevel;
  readonly format: "json" | "text";
  readonly write: (line: string) => void;
  readonly clock: Clock;
}

/** A log with one line per event: `time level event key=value …`, or the same as JSON. */
export function createLog(options: LogOptions): Log {
  const lowest = logLevels.indexOf(options.level);
  const at = (level: LogLevel) => {
    const rank = logLevels.indexOf(level);
    if (rank < lowest) return () => {};
    return (event: string, fields: LogFields = {}) => {
      const time = formatInstant(options.clock.now());
      options.write(
        options.format === "json"
          ? `${JSON.stringify({ time, level, event, ...fields })}\n`
          : `${time} ${level.padEnd(5)} ${event}${textOf(fields)}\n`,
      );
    };
  };
  return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
}

function textOf(fields: LogFields): string {
  return Object.entries(fields)
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) => ` ${key}=${quoted(value)}`)
    .join("");
}

function quoted(value: unknown): string {
  const text = String(value);
  return /^[^\s"=]+$/.test(text) ? text : JSON.stringify(text);
}
