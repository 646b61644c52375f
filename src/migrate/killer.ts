/** Translates the settings of estafette-gke-preemptible-killer. */
import {
  fieldsIn,
  policyDocument,
  type Setting,
  type Settings,
  settingOf,
  type ToolSetup,
  type Translation,
  unreadable,
} from "./workload.ts";

export const killerImage = "estafette-gke-preemptible-killer";

/** The label by which the killer selects nodes; it does not know `cloud.google.com/gke-spot`. */
const preemptibleLabel = "cloud.google.com/gke-preemptible";

export const killerFlags = {
  "blacklist-hours": { name: "BLACKLIST_HOURS", short: "b" },
  "drain-timeout": { name: "DRAIN_TIMEOUT" },
  filters: { name: "FILTERS", short: "f" },
  interval: { name: "INTERVAL", short: "i" },
  kubeconfig: { name: "KUBECONFIG" },
  "whitelist-hours": { name: "WHITELIST_HOURS", short: "w" },
  "metrics-listen-address": { name: "METRICS_LISTEN_ADDRESS" },
  "metrics-path": { name: "METRICS_PATH" },
} as const;

/** Settings without which a policy would do more than was intended. */
export const killerLimits = ["BLACKLIST_HOURS", "WHITELIST_HOURS", "FILTERS", "DRAIN_TIMEOUT"];

/** Every known setting, with the reason if it has no equivalent. */
const withoutEqual: Readonly<Record<string, string>> = {
  INTERVAL: "Lastcall watches the cluster and acts when a departure is due",
  KUBECONFIG: "the controller uses the service account of its pod",
  METRICS_LISTEN_ADDRESS: "metrics are at controller.options.metrics-address, :9101 by default",
  METRICS_PATH: "metrics are at /metrics",
};

const translated = [...killerLimits, "ESTAFETTE_LOG_FORMAT", "ESTAFETTE_LOG_LEVEL"];

/** Variables of the killer's environment that are not settings. */
const ownVariables = ["GOOGLE_APPLICATION_CREDENTIALS"];

const defaultDrainSeconds = 300;
/** A node leaves within 12 hours; the rest is for the drain and the release. */
const mostDrainSeconds = 11 * 3600;

/** Throws INPUT_INVALID if hours, filters or the timeout cannot be parsed. */
export function translateKiller(setup: ToolSetup): Translation {
  const { settings } = setup;
  const drainSeconds = drainSecondsOf(settings);
  const windows = [
    ...windowsOf(settingOf(settings, "WHITELIST_HOURS"), "whitelist", "Allow"),
    ...windowsOf(settingOf(settings, "BLACKLIST_HOURS"), "blacklist", "Deny"),
  ];
  const expressions = [
    { key: preemptibleLabel, operator: "In", values: ["true"] },
    ...filtersOf(settingOf(settings, "FILTERS")),
  ];
  const reserveSeconds = Math.max(1800, drainSeconds + 900);
  const policy = policyDocument("gke-preemptible", {
    nodeSelector: { nodeSelectorTerms: [{ matchExpressions: expressions }] },
    lifetime: { min: "12h", max: "24h", reserve: `${reserveSeconds}s` },
    spacing: { mode: "Even" },
    ...(windows.length > 0 && { windows }),
    drain: { timeout: `${drainSeconds}s`, onTimeout: "Proceed" },
  });
  return {
    policies: [policy],
    values: withOptions(setup.values, logOptions(settings)),
    notes: [...setup.notes, ...notesOn(settings)],
  };
}

function drainSecondsOf(settings: Settings): number {
  const setting = settingOf(settings, "DRAIN_TIMEOUT");
  if (setting === undefined) return defaultDrainSeconds;
  const found = Number(setting.text);
  const isRight = /^\d{1,5}$/.test(setting.text) && found > 0 && found <= mostDrainSeconds;
  if (!isRight) throw unreadable(setting, `a number of seconds from 1 to ${mostDrainSeconds}`);
  return found;
}

const clock = "([01]?\\d|2[0-3]):([0-5]\\d)";
const hoursPattern = new RegExp(`^${clock}-${clock}$`);

function windowsOf(setting: Setting | undefined, prefix: string, type: "Allow" | "Deny") {
  if (setting === undefined) return [];
  const spans = setting.text.replaceAll(" ", "").split(",");
  return spans.map((span, index) => {
    const [, fromHour, fromMinute, toHour, toMinute] = hoursPattern.exec(span) ?? [];
    const start = `${fromHour?.padStart(2, "0")}:${fromMinute}`;
    const end = `${toHour?.padStart(2, "0")}:${toMinute}`;
    // The killer treats a span with equal ends as empty.
    if (fromHour === undefined || start === end) {
      throw unreadable({ ...setting, text: span }, "hours such as 09:00 - 12:00, 22:00 - 06:00");
    }
    return { name: `${prefix}-${index + 1}`, type, timeZone: "UTC", start, end };
  });
}

const label = "[A-Za-z0-9](?:[-._A-Za-z0-9]*[A-Za-z0-9])?";
const filterPattern = new RegExp(`^((?:[-.a-z0-9]+/)?${label}):(${label}(?:,${label})*)$`);

function filtersOf(setting: Setting | undefined) {
  if (setting === undefined) return [];
  const pairs = setting.text.replaceAll(" ", "").split(";");
  return pairs.map((pair) => {
    const [, key, values] = filterPattern.exec(pair) ?? [];
    if (key === undefined || values === undefined) {
      throw unreadable({ ...setting, text: pair }, "label filters such as pool: a, b; team: web");
    }
    return { key, operator: "In", values: values.split(",") };
  });
}

function logOptions(settings: Settings): Readonly<Record<string, string>> {
  const format = settingOf(settings, "ESTAFETTE_LOG_FORMAT")?.text;
  const level = settingOf(settings, "ESTAFETTE_LOG_LEVEL")?.text.toLowerCase();
  // It treats an unknown value as plaintext.
  const isJson = format !== undefined && ["json", "stackdriver", "v3"].includes(format);
  const logLevel = level === undefined ? undefined : (logLevels[level] ?? "info");
  return {
    ...(format !== undefined && { "log-format": isJson ? "json" : "text" }),
    ...(logLevel !== undefined && { "log-level": logLevel }),
  };
}

const logLevels: Readonly<Record<string, string>> = {
  ...{ trace: "debug", debug: "debug", info: "info", warn: "warn" },
  ...{ error: "error", fatal: "error", panic: "error", disabled: "error" },
};

/** The values with options of the controller added. */
function withOptions(
  values: ToolSetup["values"],
  options: Readonly<Record<string, unknown>>,
): ToolSetup["values"] {
  if (Object.keys(options).length === 0) return values;
  return { ...values, controller: { ...fieldsIn(values, "controller"), options } };
}

function notesOn(settings: Settings): readonly string[] {
  const notes = [...settings.values()].flatMap(({ name, place, text }) => {
    const why = withoutEqual[name];
    if (why !== undefined) return [`${place} has no equivalent: ${why}`];
    if (translated.includes(name) || ownVariables.includes(name) || text === "") return [];
    return [`${place} is not a setting of the killer 1.3.1 and is omitted`];
  });
  const filters = settingOf(settings, "FILTERS");
  if (filters?.text.includes(",")) {
    notes.push(
      `${filters.place} has several values for a label: the policy selects nodes with any of them, as the killer's README describes; the killer itself selected hardly any`,
    );
  }
  if (covers(settings)) {
    const place = settingOf(settings, "BLACKLIST_HOURS")?.place;
    notes.push(`${place} leaves no hour: every node leaves at its deadline`);
  }
  return notes;
}

/** Whether the hours leave no minute of the day. */
function covers(settings: Settings): boolean {
  const allowed = minutesOf(settingOf(settings, "WHITELIST_HOURS"));
  const denied = minutesOf(settingOf(settings, "BLACKLIST_HOURS"));
  const minutes = Array.from({ length: 24 * 60 }, (_, minute) => minute);
  return denied !== undefined && minutes.every((one) => denied(one) || !(allowed?.(one) ?? true));
}

function minutesOf(setting: Setting | undefined): ((minute: number) => boolean) | undefined {
  if (setting === undefined) return undefined;
  const spans = windowsOf(setting, "", "Allow").map(({ start, end }) => [
    minuteOf(start),
    minuteOf(end),
  ]);
  return (minute) =>
    spans.some(([from = 0, to = 0]) =>
      from < to ? minute >= from && minute < to : minute >= from || minute < to,
    );
}

function minuteOf(time: string): number {
  return Number(time.slice(0, 2)) * 60 + Number(time.slice(3));
}
