const weekday = "([0-7]|sun|mon|tue|wed|thu|fri|sat)";

/**
 * The grammar of a five-field cron expression as one regular expression, so that the API server
 * too refuses `61 * * * *`. What it cannot say is that the end of a range lies after its start.
 * Beyond Vixie cron it takes what croner does: `L` for the last day of the month, `5#1` for the
 * first and `5#L` for the last Friday of it. Names are in small letters: match without case.
 */
export const cronPattern: string = cronFields([
  { value: "[0-5]?[0-9]", step: "[1-9]|[1-5][0-9]" },
  { value: "(2[0-3]|[01]?[0-9])", step: "[1-9]|1[0-9]|2[0-3]" },
  { value: "(3[01]|[12][0-9]|0?[1-9])", step: "[1-9]|[12][0-9]|3[01]", extra: "L" },
  {
    value: "(1[0-2]|0?[1-9]|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)",
    step: "[1-9]|1[0-2]",
  },
  { value: weekday, step: "[1-7]", extra: `${weekday}#[1-5L]` },
]);

interface CronField {
  readonly value: string;
  readonly step: string;
  /** What the field takes beside values, ranges and steps. */
  readonly extra?: string;
}

function cronFields(fields: readonly CronField[]): string {
  const written = fields.map(({ value, step, extra }) => {
    const plain = `\\*(/(${step}))?|${value}(-${value}(/(${step}))?)?`;
    const item = `(${extra === undefined ? plain : `${extra}|${plain}`})`;
    return `${item}(,${item})*`;
  });
  return `^${written.join(" +")}$`;
}
