import { App } from "./app.tsx";
import { replaceSearch } from "./browser.ts";
import { choiceIn, searchOf } from "./list-choice.ts";
import { render } from "./preact.ts";
import { LiveBoard } from "./view-state.ts";

const live = new LiveBoard();
const root = document.getElementById("board");
// The token has been exchanged for a cookie: keep it out of the history and of bookmarks.
replaceSearch(searchOf(choiceIn(location.search)));
const see = (): void => live.setShown(!document.hidden);
document.addEventListener("visibilitychange", see);
see();
live.connect();
if (root !== null) {
  root.replaceChildren();
  render(<App live={live} />, root);
}
