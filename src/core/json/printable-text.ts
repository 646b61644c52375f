/**
 * Text that others wrote, made safe to show. Names, labels and messages from a cluster or a service
 * may contain characters that a terminal obeys, or that change the order in which the rest is read,
 * so that a sentence seems to say something else. kubectl replaces only escape and carriage return.
 */

/** Control and format characters, and separators of lines. Format characters reorder or hide. */
const unprintable = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/** With each of those characters replaced: for sentences and tables. */
export function printable(text: string): string {
  return text.replace(unprintable, "\ufffd");
}

/** Layout and colours of our own, or one of those characters. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: it is what a colour begins with
const inLayout = /([\n\r\t]|\u001b\[[0-9;]*m)|[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/** The same for text that is laid out in lines and colours already. */
export function printableLines(text: string): string {
  return text.replace(inLayout, (_, kept?: string) => kept ?? "\ufffd");
}

/** Without the line breaks of JSON's own layout. */
const unprintableInJson = /(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/** As JSON with each of those characters escaped: whoever parses it gets the same text. */
export function escapedJson(value: unknown, indent?: number): string {
  return JSON.stringify(value, undefined, indent).replace(unprintableInJson, escaped);
}

function escaped(character: string): string {
  const units = Array.from({ length: character.length }, (_, at) => character.charCodeAt(at));
  return units.map((unit) => `\\u${unit.toString(16).padStart(4, "0")}`).join("");
}
