import { type DemoKey, type DemoPicture, demoKeyOf } from "../../board/demo-picture.ts";
import { after, postJson } from "../browser.ts";
import { useEffect, useState } from "../preact.ts";

const againMs = 1000;

/**
 * The two fleets as the demo tells them while the page is seen; undefined until the first word. A
 * browser has six connections to a server for all of its tabs: a hidden one keeps none.
 */
export function useDemo(): DemoPicture | undefined {
  const [picture, setPicture] = useState<DemoPicture | undefined>(undefined);
  useEffect(() => {
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
      source = new EventSource("/api/demo");
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
  }, []);
  return picture;
}

/** What comes of it is shown by the next picture; a demo that is gone is told of by the board. */
export function pressKey(key: DemoKey): void {
  postJson("/api/demo/key", { key }).catch(() => undefined);
}

const takers = "input, textarea, select, dialog, svg";

/**
 * The keys of the demo, while nothing else on the page has the keyboard: a field that is written
 * in, a dialog, or a button that a space presses.
 */
export function useDemoKeys(): void {
  useEffect(() => {
    const press = (event: KeyboardEvent): void => {
      const key = demoKeyOf(event.key);
      if (key === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
      const taken = event.key === " " ? `${takers}, button, a, summary` : takers;
      if (document.activeElement?.closest(taken)) return;
      event.preventDefault();
      pressKey(key);
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
}
