import type { Clock } from "../contracts/clock.ts";
import { seconds } from "../core/time/time.ts";
import { LastcallError, messageOf } from "../errors.ts";

export interface AlertQuestion {
  /** The base address of Alertmanager, such as `http://alertmanager.monitoring:9093`. */
  readonly url: string;
  /** Alertmanager's own matchers, such as `severity="critical"`; all must hold. */
  readonly matchers: readonly string[];
}

export interface AlertmanagerOptions {
  readonly fetch: typeof fetch;
  readonly clock: Clock;
}

const timeoutMs = seconds(5);
/** Past this an answer is not of Alertmanager; it is not read further. */
const mostBytes = 8 * 1024 * 1024;

/**
 * The names of the alerts that fire now, are neither silenced nor inhibited, and match. By the
 * Alertmanager API v2 (`GET /api/v2/alerts?active=true&silenced=false&inhibited=false&filter=…`).
 * One that it has not looked at yet counts: it may be neither. Throws API_UNREACHABLE; whoever asks
 * takes it for a closed gate.
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
    .then(() => late.abort(new Error(`no answer within ${timeoutMs / 1000} s`)))
    .catch(() => undefined);
  try {
    const answer = await options.fetch(alertsAddress(question), {
      signal: AbortSignal.any([signal, late.signal]),
      headers: { accept: "application/json" },
    });
    const text = await boundedText(answer);
    // A matcher that it cannot read is answered with what is wrong with it.
    if (!answer.ok) throw new Error(`it answered ${answer.status} (${text.trim().slice(0, 200)})`);
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

/** Whoever answers without end fills no memory: what is left is not read. */
export async function boundedText({ body }: Response): Promise<string> {
  const decoder = new TextDecoder();
  let bytes = 0;
  let text = "";
  for await (const part of body ?? []) {
    bytes += part.byteLength;
    if (bytes > mostBytes) throw new Error("its answer is over 8 MiB");
    text += decoder.decode(part, { stream: true });
  }
  return text + decoder.decode();
}

function alertNames(text: string): readonly string[] {
  const alerts: unknown = JSON.parse(text);
  if (!Array.isArray(alerts)) throw new Error("its answer is no list");
  const names = alerts.map((alert: { labels?: { alertname?: unknown } } | null) =>
    String(alert?.labels?.alertname ?? "unnamed"),
  );
  return [...new Set(names)].toSorted();
}
