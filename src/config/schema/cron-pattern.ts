const months = "jan feb mar apr may jun jul aug sep oct nov dec".split(" ");
const weekdays = "sun mon tue wed thu fri sat".split(" ");
const weekday = `([0-7]|${weekdays.join("|")})`;

/**
 * The grammar of a five-field cron expression as one regular expression, so that the API server too
 * refuses `61 * * * *`. What it cannot say is that the end of a range lies after its start:
 * `backwardsCronPattern` does. Beyond Vixie cron it takes what croner does: `L` for the last day of
 * the month, `5#1` for the first and `5#L` for the last Friday of it. Names are in small letters:
 * match without case.
 */
export const cronPattern: string = cronFields([
  { value: "[0-5]?[0-9]", step: "[1-9]|[1-5][0-9]" },
  { value: "(2[0-3]|[01]?[0-9])", step: "[1-9]|1[0-9]|2[0-3]" },
  { value: "(3[01]|[12][0-9]|0?[1-9])", step: "[1-9]|[12][0-9]|3[01]", extra: "L" },
  {
    value: `(1[0-2]|0?[1-9]|${months.join("|")})`,
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

/**
 * An expression of that grammar in which a range runs backwards, as one regular expression: CEL
 * could compare numbers, but at a cost that the API server does not allow for a list of windows.
 */
export const backwardsCronPattern: string = `(^|[ ,])(${[
  ...backwardsNumbers(),
  ...backwardsNames(months, { from: 1, most: 12 }),
  ...backwardsNames(weekdays, { from: 0, most: 7 }),
].join("|")})($|[ ,/])`;

/** Both ends are 0 to 59, with a leading zero or without. */
function backwardsNumbers(): readonly string[] {
  const tens = ["0?", "1", "2", "3", "4", "5"];
  return tens.flatMap((ten, place) => [
    ...(place < 5 ? [`[${place + 1}-5][0-9]-${ten}[0-9]`] : []),
    ...Array.from({ length: 9 }, (_, unit) => `${ten}[${unit + 1}-9]-${ten}${unit}`),
  ]);
}

/** At least one end is a name. A range may end with Sunday, which is the seventh day there. */
function backwardsNames(
  names: readonly string[],
  { from, most }: { readonly from: number; readonly most: number },
): readonly string[] {
  const numbers = (first: number, last: number) =>
    Array.from({ length: last - first + 1 }, (_, place) => `0?${first + place}`);
  return names.flatMap((name, place) => {
    const value = from + place;
    const before = [
      ...names.slice(0, place).filter((one) => one !== "sun"),
      ...numbers(0, value - 1),
    ];
    const after = name === "sun" ? [] : numbers(value + 1, most);
    return [
      ...(before.length === 0 ? [] : [`${name}-(${before.join("|")})`]),
      ...(after.length === 0 ? [] : [`(${after.join("|")})-${name}`]),
    ];
  });
}
