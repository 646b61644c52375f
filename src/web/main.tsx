import { App } from "./app.tsx";
import { render } from "./preact.ts";
import { LiveBoard } from "./view-state.ts";

const live = new LiveBoard();
const root = document.getElementById("board");
// The token has been exchanged for a cookie: keep it out of the history and of bookmarks.
if (location.search !== "") history.replaceState(null, "", `${location.pathname}${location.hash}`);
const see = (): void => live.setShown(!document.hidden);
document.addEventListener("visibilitychange", see);
see();
live.connect();
if (root !== null) {
  root.replaceChildren();
  render(<App live={live} />, root);
}
