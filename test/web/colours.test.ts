/**
 * How the colours of the board look to people with colour vision deficiencies: simulated as by
 * Machado, Oliveira and Fernandes (2009) for dichromats, with distances in OKLab times 100.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";

const web = join(import.meta.dirname, "..", "..", "src", "web");
const sheets = [join(web, "board.css"), join(web, "demo", "demo.css")].map((path) =>
  readFileSync(path, "utf8"),
);
const css = sheets.join("\n");

type Linear = readonly [number, number, number];
type Matrix = readonly [Linear, Linear, Linear];

const visions: Readonly<Record<string, Matrix>> = {
  "all colours": [
    [1, 0, 0],
    [0, 1, 0],
    [0, 0, 1],
  ],
  protanopia: [
    [0.152286, 1.052583, -0.204868],
    [0.114503, 0.786281, 0.099216],
    [-0.003882, -0.048116, 1.051998],
  ],
  deuteranopia: [
    [0.367322, 0.860646, -0.227968],
    [0.280085, 0.672501, 0.047413],
    [-0.01182, 0.04294, 0.968881],
  ],
  tritanopia: [
    [1.255528, -0.076749, -0.178779],
    [-0.078411, 0.930809, 0.147602],
    [0.004733, 0.691367, 0.3039],
  ],
};

const themes = { dark: /^:root \{([^}]*)\}/m, light: /^:root\[data-theme="light"\] \{([^}]*)\}/m };
type Theme = keyof typeof themes;

function tokensOf(theme: Theme): ReadonlyMap<string, Linear> {
  const [, text = ""] = themes[theme].exec(css) ?? [];
  return new Map(
    [...text.matchAll(/--([a-z-]+): (#[0-9a-f]{6});/g)].map(([, name = "", hex = ""]) => [
      name,
      linearOf(hex),
    ]),
  );
}

function linearOf(hex: string): Linear {
  const part = (place: number): number => {
    const value = Number.parseInt(hex.slice(place, place + 2), 16) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  };
  return [part(1), part(3), part(5)];
}

function times(matrix: Matrix, [r, g, b]: Linear): Linear {
  return matrix.map(([x, y, z]) => x * r + y * g + z * b) as unknown as Linear;
}

function seen(colour: Linear, matrix: Matrix): Linear {
  return times(matrix, colour).map((part) => Math.min(1, Math.max(0, part))) as unknown as Linear;
}

/** As WCAG defines it. */
function contrast(one: Linear, other: Linear): number {
  const light = ([r, g, b]: Linear): number => 0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05;
  return Math.max(light(one), light(other)) / Math.min(light(one), light(other));
}

function distance(one: Linear, other: Linear): number {
  const [a, b] = [inOklab(one), inOklab(other)];
  return 100 * Math.hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]);
}

function inOklab(colour: Linear): Linear {
  const cones = times(
    [
      [0.4122214708, 0.5363325363, 0.0514459929],
      [0.2119034982, 0.6806995451, 0.1073969566],
      [0.0883024619, 0.2817188376, 0.6299787005],
    ],
    colour,
  ).map(Math.cbrt) as unknown as Linear;
  return times(
    [
      [0.2104542553, 0.793617785, -0.0040720468],
      [1.9779984951, -2.428592205, 0.4505937099],
      [0.0259040371, 0.7827717662, -0.808675766],
    ],
    cones,
  );
}

const looks = (["dark", "light"] as const).flatMap((theme) =>
  Object.entries(visions).map(([vision, matrix]) => {
    const colours = new Map([...tokensOf(theme)].map(([name, one]) => [name, seen(one, matrix)]));
    const of = (name: string): Linear => colours.get(name) ?? [Number.NaN, 0, 0];
    return { theme, vision, of };
  }),
);

/** Fills this far apart are distinguished at a glance; about 2 is just noticeable. */
const farApart = 15;

describe.each(looks)("in the $theme theme, to an eye that sees $vision", ({ of }) => {
  it.each(["text", "dim", "accent", "good", "held", "bad"])("%s is readable", (name) => {
    for (const ground of ["ground", "panel"]) {
      expect(contrast(of(name), of(ground))).toBeGreaterThanOrEqual(4.5);
    }
  });

  it.each(["accent", "held", "bad"])("good is easily told from %s", (name) => {
    expect(distance(of("good"), of(name))).toBeGreaterThan(farApart);
  });
});

/** To some people these three are one colour, so the colour alone must carry no meaning. */
it("accent, held and bad look alike to some people", () => {
  const nearest = looks.map(({ of }) => distance(of("accent"), of("bad")));
  expect(Math.min(...nearest)).toBeLessThan(farApart);
});

interface Drawn {
  readonly selector: string;
  readonly token: string;
  /** Its declarations, with every colour replaced by the same text. */
  readonly shape: string;
}

function drawn(selector: string): Drawn {
  const escaped = selector.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  const rules = [
    ...css.matchAll(new RegExp(`(?:^|,\\n)${escaped}(?:,\\n[^{]+)? \\{([^}]*)\\}`, "gm")),
  ];
  expect([selector, rules.length]).toEqual([selector, 1]);
  const text = rules[0]?.[1] ?? "";
  const [, token = ""] = /var\(--(accent|good|held|bad|dim|text|track)\)/.exec(text) ?? [];
  return { selector, token, shape: text.replaceAll(/var\(--[a-z-]+\)/g, "a colour") };
}

describe("adjacent marks differ in shape, or enough in colour for everybody", () => {
  it.each<[string, readonly string[]]>([
    ["the pods of a drain", [".marks .here", ".marks .gone", ".marks .blocked"]],
    [
      "the outcomes of a day",
      [
        ".days .bars .Planned",
        ".days .bars .Preempted",
        ".days .bars .Forced",
        ".days .bars .Failed",
      ],
    ],
    [
      "the pods of a drain plan",
      [".lane .given", ".lane .given.held", ".lane .given.cut", ".lane .given.going"],
    ],
    ["the pods of a past drain", [".lane .took", ".lane .took.going", ".lane .took.lost"]],
    [
      "the departures of the timeline",
      [
        ".drawing .depart",
        ".drawing .ghost",
        ".drawing .Held .depart",
        ".drawing .Leaving .depart",
      ],
    ],
    ["the pods of the demo", [".pods .fill", ".pods .ended .fill"]],
  ])("%s", (_, selectors) => {
    const all = selectors.map(drawn);
    for (const [place, one] of all.entries()) {
      for (const other of all.slice(place + 1)) {
        if (one.shape !== other.shape) continue;
        for (const { theme, vision, of } of looks) {
          const apart = distance(of(one.token), of(other.token));
          expect([one.selector, other.selector, theme, vision, apart > farApart]).toEqual([
            ...[one.selector, other.selector, theme, vision, true],
          ]);
        }
      }
    }
  });
});
