// What every page has: the theme, the keys, and news of a run that goes on.
import { keys, showKeys } from "./keys.js";
import { follow } from "./live.js";

function turnTheme() {
  const root = document.documentElement;
  const dark = root.dataset.theme
    ? root.dataset.theme === "dark"
    : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  localStorage.setItem("openfield-theme", root.dataset.theme);
}

/** Open what an address names, if it is folded in. */
function unfold() {
  const wanted = document.getElementById(location.hash.slice(1));
  if (wanted?.matches("details")) wanted.open = true;
}

addEventListener("hashchange", unfold);
unfold();
document.getElementById("theme").addEventListener("click", turnTheme);
document.getElementById("help").addEventListener("click", showKeys);
keys({
  "?": ["this page", showKeys],
  t: ["light or dark", turnTheme],
  h: ["all runs", () => location.assign("/")],
});
follow();
