import { copyText, selectText } from "./browser.ts";
import { useState, type VNode } from "./preact.ts";
import type { PageView } from "./view-state.ts";

interface CopyProps {
  readonly view: PageView;
  readonly text: string;
  /** The id of the element that contains the text. */
  readonly shownBy: string;
}

/**
 * Copies a text. Browsers let a page write to the clipboard only with the user's permission, and
 * not at all over plain HTTP: then the text is selected, and the page says which keys copy it.
 */
export function CopyButton({ view, text, shownBy }: CopyProps): VNode {
  const { words } = view;
  const [copied, setCopied] = useState<{ readonly text: string; readonly isDone: boolean }>();
  const copy = async (): Promise<void> => {
    const isDone = await copyText(text);
    if (!isDone) selectText(shownBy);
    setCopied({ text, isDone });
  };
  const last = copied?.text === text ? copied : undefined;
  return (
    <>
      <button type="button" onClick={() => void copy()}>
        {last?.isDone ? words.copied : words.copy}
      </button>{" "}
      <span role="status">{last?.isDone === false ? words.selected : ""}</span>
    </>
  );
}
