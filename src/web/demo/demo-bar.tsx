/** The demo's clock, which a person controls from every page. */
import { type DemoKey, type DemoPicture, demoKeyOf } from "../../board/demo-picture.ts";
import { after, postJson } from "../browser.ts";
import { useEffect, useState, type VNode } from "../preact.ts";
import type { PagePlace } from "../view-state.ts";
import type { Language } from "../words/time-text.ts";
import { demoWords } from "./demo-words.ts";

const againMs = 1000;

/**
 * The two fleets as the demo sends them while the page is visible; undefined until the first
 * message. A browser has six connections to a server for all of its tabs: a hidden page keeps none.
 */
export function useDemo(isDemo: boolean): DemoPicture | undefined {
  const [picture, setPicture] = useState<DemoPicture | undefined>(undefined);
  useEffect(() => {
    if (!isDemo) return undefined;
    let source: EventSource | undefined;
    let stopWaiting = (): void => {};
    const close = (): void => {
      stopWaiting();
      source?.close();
      source = undefined;
    };
    const open = (): void => {
      close();
      if (document.hidden) return;
      source = new EventSource("api/demo");
      source.onmessage = ({ data }) => setPicture(JSON.parse(String(data)) as DemoPicture);
      source.onerror = () => {
        close();
        stopWaiting = after(againMs, open);
      };
    };
    open();
    document.addEventListener("visibilitychange", open);
    return () => {
      document.removeEventListener("visibilitychange", open);
      close();
    };
  }, [isDemo]);
  return picture;
}

/** The next update shows the effect; if the demo has ended, the board says so. */
function pressKey(key: DemoKey): void {
  postJson("api/demo/key", { key }).catch(() => undefined);
}

const takers = "input, textarea, select, dialog";

/**
 * The demo's keys, unless another element has the keyboard focus: a text field, a dialog, or a
 * button that the space bar presses. A link, which has the focus after it was followed, is none.
 */
function useDemoKeys(): void {
  useEffect(() => {
    const press = (event: KeyboardEvent): void => {
      const key = demoKeyOf(event.key);
      if (key === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
      const taken = event.key === " " ? `${takers}, button, summary` : takers;
      if (document.activeElement?.closest(taken)) return;
      event.preventDefault();
      pressKey(key);
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
}

/**
 * Pauses while the page of a node is open: at 60 times the speed it would leave while one reads
 * about it. Told at each change of the page, so that a lost message is made good by the next.
 */
function useReading(isReading: boolean): void {
  useEffect(() => pressKey(isReading ? "Read" : "ReadOn"), [isReading]);
}

interface DemoBarProps {
  readonly language: Language;
  readonly place: PagePlace;
  readonly picture: DemoPicture;
}

export function DemoBar({ language, place, picture }: DemoBarProps): VNode {
  const words = demoWords[language];
  const { paused, isReading, speed, moment } = picture;
  useDemoKeys();
  useReading(place.page === "Node");
  const rounded = speed < 10 ? Math.round(speed * 10) / 10 : Math.round(speed);
  const why = words.moments[moment];
  return (
    <section class="stage-keys" aria-label={words.keys}>
      <button type="button" onClick={() => pressKey("Pause")}>
        {paused ? words.resume : words.pause} <kbd>space</kbd>
      </button>
      <button type="button" onClick={() => pressKey("Slower")}>
        {words.slower} <kbd>−</kbd>
      </button>
      <button type="button" onClick={() => pressKey("Faster")}>
        {words.faster} <kbd>+</kbd>
      </button>
      <button type="button" onClick={() => pressKey("NextEvent")}>
        {words.nextEvent} <kbd>n</kbd>
      </button>
      <button type="button" onClick={() => pressKey("Interrupt")}>
        {words.interrupt} <kbd>i</kbd>
      </button>
      <span class="stage-speed">
        <span role="status">{isReading ? words.pausedToRead : paused ? words.paused : ""}</span>
        {paused ? null : `${rounded}×${why === "" ? "" : ` · ${why}`}`}
      </span>
    </section>
  );
}
