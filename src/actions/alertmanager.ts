import type { Clock } from "../contracts/clock.ts";
import { withinTime } from "../contracts/time-limit.ts";
import { fieldsOf, nameOf } from "../core/json/json-field.ts";
import { seconds } from "../core/time/time.ts";
import { LastcallError } from "../errors.ts";
import { sendForJson } from "./action-sink.ts";
import { addressUnder, answerInvalid, type HttpSender } from "./http-sender.ts";

export interface AlertQuestion {
  /** The base address of Alertmanager, such as `http://alertmanager.monitoring:9093`. */
  readonly url: string;
  /** Alertmanager matchers, such as `severity="critical"`, all of which must match. */
  readonly matchers: readonly string[];
}

export interface AlertmanagerOptions {
  readonly sender: HttpSender;
  readonly clock: Clock;
}

const what = "ask Alertmanager for its alerts";
const timeoutMs = seconds(5);
/** The names of alerts are the only text of the response that is shown. */
const longestName = 100;

/**
 * Returns the names of the firing alerts that match and are neither silenced nor inhibited, by the
 * Alertmanager API v2 (`GET /api/v2/alerts?active=true&silenced=false&inhibited=false&filter=…`).
 * Unprocessed alerts count, because they may be neither. Throws ACTION_*, which the caller treats
 * as a closed gate.
 */
export async function firingAlerts(
  question: AlertQuestion,
  { sender, clock }: AlertmanagerOptions,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const request = { what, url: alertsAddress(question), method: "GET" };
  const problem = `Cannot ${what}: no response within ${timeoutMs / 1000} s`;
  const late = () => new LastcallError("ACTION_TIMEOUT", problem);
  const work = (until: AbortSignal) => sendForJson(request, { sender }, until);
  return alertNames(await withinTime(work, { clock, limitMs: timeoutMs, late }, signal));
}

function alertsAddress({ url, matchers }: AlertQuestion): string {
  const query = new URLSearchParams({ active: "true", silenced: "false", inhibited: "false" });
  for (const matcher of matchers) query.append("filter", matcher);
  return addressUnder(url, "/api/v2/alerts", query);
}

function alertNames(alerts: unknown): readonly string[] {
  if (!Array.isArray(alerts)) throw answerInvalid(what, "its response is not a list");
  const names = alerts.map((alert) => {
    const { alertname } = fieldsOf(fieldsOf(alert).labels);
    return nameOf(alertname)?.slice(0, longestName) ?? "unnamed";
  });
  return [...new Set(names)].toSorted();
}
