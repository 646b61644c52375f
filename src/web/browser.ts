/** Everything that the page uses of its browser: time, storage, requests. */

export function elapsedMs(): number {
  return performance.now();
}

/** Calls back at an interval until stopped. */
export function every(ms: number, call: () => void): () => void {
  const timer = setInterval(call, ms);
  return () => clearInterval(timer);
}

export function after(ms: number, call: () => void): () => void {
  const timer = setTimeout(call, ms);
  return () => clearTimeout(timer);
}

/** The core needs it for time zones; older browsers do not have it. */
export function hasTemporal(): boolean {
  return "Temporal" in globalThis;
}

/** Undefined if the browser stores nothing or is configured not to. */
export function remembered(name: string): string | undefined {
  try {
    return localStorage.getItem(`lastcall-${name}`) ?? undefined;
  } catch {
    return undefined;
  }
}

export function remember(name: string, value: string): void {
  try {
    localStorage.setItem(`lastcall-${name}`, value);
  } catch {
    // Then the user chooses again next time.
  }
}

/** The value of an `<input type="datetime-local">` as an instant; undefined if it is not one. */
export function instantOfLocal(text: string): number | undefined {
  const at = new Date(text).getTime();
  return text === "" || Number.isNaN(at) ? undefined : at;
}

/** The reverse, to the minute. */
export function localOfInstant(at: number): string {
  const local = new Date(at);
  const two = (part: number): string => String(part).padStart(2, "0");
  const day = [local.getFullYear(), two(local.getMonth() + 1), two(local.getDate())].join("-");
  return `${day}T${two(local.getHours())}:${two(local.getMinutes())}`;
}

/** The next time that the wall clock shows an hour, on a given day of the week or on any. */
export function nextHour(at: number, hour: number, weekday?: number): number {
  const next = new Date(at);
  next.setHours(hour, 0, 0, 0);
  while (next.getTime() <= at || (weekday !== undefined && next.getDay() !== weekday)) {
    next.setDate(next.getDate() + 1);
  }
  return next.getTime();
}

/** By the viewer's calendar. */
export function isSameDay(one: number, other: number): boolean {
  return new Date(one).toDateString() === new Date(other).toDateString();
}

export interface Answer {
  readonly status: number;
  /** Undefined if the answer was not JSON. */
  readonly json: unknown;
}

/** Rejects if the server does not answer. */
export async function getJson(path: string): Promise<Answer> {
  return readAnswer(await fetch(path, { headers: { accept: "application/json" } }));
}

export async function postJson(path: string, body: unknown): Promise<Answer> {
  const headers = { "content-type": "application/json" };
  return readAnswer(await fetch(path, { method: "POST", headers, body: JSON.stringify(body) }));
}

async function readAnswer(response: Response): Promise<Answer> {
  const json: unknown = await response.json().catch(() => undefined);
  return { status: response.status, json };
}

/** The part of the address before the fragment, without a step of the browser's history. */
export function replaceSearch(search: string): void {
  history.replaceState(null, "", `${location.pathname}${search}${location.hash}`);
}

/** Whether any element of the page has the keyboard focus. */
export function hasFocus(): boolean {
  const { activeElement, body } = document;
  return activeElement !== null && activeElement !== body;
}

export function focusOn(id: string): void {
  document.getElementById(id)?.focus();
}

export function openNode(name: string): void {
  location.hash = `/node/${encodeURIComponent(name)}`;
}

/** Opens a collapsed part of the page, and shows it. */
export function openDetails(id: string): void {
  const element = document.getElementById(id);
  if (!(element instanceof HTMLDetailsElement)) return;
  element.open = true;
  element.scrollIntoView({ block: "center" });
  element.querySelector("summary")?.focus();
}

export function newKey(): string {
  return crypto.randomUUID();
}

/** Selects an element's text, so that the user can copy it with a key. */
export function selectText(id: string): void {
  const element = document.getElementById(id);
  if (element instanceof HTMLTextAreaElement) {
    element.focus();
    element.select();
  } else if (element !== null) getSelection()?.selectAllChildren(element);
}

/** False if the browser does not let the page write to the clipboard. */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}
