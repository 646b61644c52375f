/** A whole terminal for as long as it is open; what was on it before comes back at the end. */
export interface TerminalScreen {
  size(): { readonly columns: number; readonly rows: number };
  draw(frame: string): void;
  /** Calls back when the terminal has another size; gives the way to stop it. */
  onResize(listener: () => void): () => void;
  close(): void;
}

/** The alternate screen, the cursor hidden; and back. */
const enter = "\u001b[?1049h\u001b[?25l";
const leave = "\u001b[?25h\u001b[?1049l";

/** Takes the terminal over. It is given back on `close`, and however the process ends by itself. */
export function openTerminalScreen(): TerminalScreen {
  const { stdout } = process;
  let isOpen = true;
  const close = (): void => {
    if (!isOpen) return;
    isOpen = false;
    process.off("exit", close);
    stdout.write(leave);
  };
  process.on("exit", close);
  stdout.write(enter);
  return {
    size: () => ({ columns: stdout.columns ?? 80, rows: stdout.rows ?? 24 }),
    draw: (frame) => {
      if (isOpen) stdout.write(frame);
    },
    onResize: (listener) => {
      stdout.on("resize", listener);
      return () => stdout.off("resize", listener);
    },
    close,
  };
}
