import { between, type Instant } from "../../core/time/time.ts";

/** When an instant is as seen from another: `in 3h12m`, `now`, `5m ago`. */
export function relativeTime(at: Instant, from: Instant): string {
  const spanMs = between(from, at);
  if (Math.abs(spanMs) < 1000) return "now";
  return spanMs < 0 ? `${spanText(-spanMs)} ago` : `in ${spanText(spanMs)}`;
}

/** Two units at most: `45s`, `12m`, `3h04m`, `6d2h`. */
export function spanText(spanMs: number): string {
  const wholeSeconds = Math.floor(spanMs / 1000);
  if (wholeSeconds < 60) return `${wholeSeconds}s`;
  const wholeMinutes = Math.floor(wholeSeconds / 60);
  if (wholeMinutes < 60) return `${wholeMinutes}m`;
  const wholeHours = Math.floor(wholeMinutes / 60);
  if (wholeHours < 48) return `${wholeHours}h${String(wholeMinutes % 60).padStart(2, "0")}m`;
  return `${Math.floor(wholeHours / 24)}d${wholeHours % 24}h`;
}
