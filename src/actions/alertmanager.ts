import type { Clock } from "../contracts/clock.ts";
import { seconds } from "../core/time/time.ts";
import { LastcallError, messageOf } from "../errors.ts";

export interface AlertQuestion {
  /** The base address of Alertmanager, such as `http://alertmanager.monitoring:9093`. */
  readonly url: string;
  /** Alertmanager matchers, such as `severity="critical"`, all of which must match. */
  readonly matchers: readonly string[];
}

export interface AlertmanagerOptions {
  readonly fetch: typeof fetch;
  readonly clock: Clock;
}

const timeoutMs = seconds(5);
/** The size limit of a response. */
const mostBytes = 8 * 1024 * 1024;

/**
 * Returns the names of the firing alerts that match and are neither silenced nor inhibited, by the
 * Alertmanager API v2 (`GET /api/v2/alerts?active=true&silenced=false&inhibited=false&filter=…`).
 * Unprocessed alerts count, because they may be neither. Throws API_UNREACHABLE, which the caller
 * treats as a closed gate.
 */
export async function firingAlerts(
  question: AlertQuestion,
  options: AlertmanagerOptions,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const late = new AbortController();
  const done = new AbortController();
  void options.clock
    .sleep(timeoutMs, done.signal)
    .then(() => late.abort(new Error(`no response within ${timeoutMs / 1000} s`)))
    .catch(() => undefined);
  try {
    const answer = await options.fetch(alertsAddress(question), {
      signal: AbortSignal.any([signal, late.signal]),
      headers: { accept: "application/json" },
    });
    const text = await boundedText(answer);
    // For an invalid matcher, Alertmanager responds with the problem.
    if (!answer.ok)
      throw new Error(`it responded with ${answer.status} (${text.trim().slice(0, 200)})`);
    return alertNames(text);
  } catch (error) {
    signal.throwIfAborted();
    const found = messageOf(late.signal.aborted ? late.signal.reason : error);
    throw new LastcallError(
      "API_UNREACHABLE",
      `Cannot ask Alertmanager: ${found}, expected a list of alerts`,
    );
  } finally {
    done.abort();
  }
}

function alertsAddress({ url, matchers }: AlertQuestion): URL {
  const address = new URL(`${url.replace(/\/+$/, "")}/api/v2/alerts`);
  address.searchParams.set("active", "true");
  address.searchParams.set("silenced", "false");
  address.searchParams.set("inhibited", "false");
  for (const matcher of matchers) address.searchParams.append("filter", matcher);
  return address;
}

/** Reads the text of a response up to a limit, so that an endless one does not fill memory. */
export async function boundedText({ body }: Response): Promise<string> {
  const decoder = new TextDecoder();
  let bytes = 0;
  let text = "";
  for await (const part of body ?? []) {
    bytes += part.byteLength;
    if (bytes > mostBytes) throw new Error("its response is over 8 MiB");
    text += decoder.decode(part, { stream: true });
  }
  return text + decoder.decode();
}

function alertNames(text: string): readonly string[] {
  const alerts: unknown = JSON.parse(text);
  if (!Array.isArray(alerts)) throw new Error("its response is not a list");
  const names = alerts.map((alert: { labels?: { alertname?: unknown } } | null) =>
    String(alert?.labels?.alertname ?? "unnamed"),
  );
  return [...new Set(names)].toSorted();
}
