// Lists of runs and trials: what is typed filters at once, and keys walk through the rows.
import { keys } from "./keys.js";
import { refresh } from "./live.js";

const form = document.getElementById("filters");
const picked = document.getElementById("picked");
let waiting;

async function filter() {
  const wanted = new URLSearchParams([...new FormData(form)].filter(([, value]) => value));
  history.replaceState(null, "", `${location.pathname}${wanted.size ? `?${wanted}` : ""}`);
  await refresh();
}

form?.addEventListener("input", () => {
  clearTimeout(waiting);
  waiting = setTimeout(filter, 120);
});
form?.addEventListener("submit", (event) => { event.preventDefault(); filter(); });

function step(by) {
  const links = [...document.querySelectorAll(".rows th[scope=row] a")].filter((each) => each.checkVisibility());
  const at = links.indexOf(document.activeElement?.closest("tr")?.querySelector("th[scope=row] a"));
  links[Math.min(links.length - 1, Math.max(0, at + by))]?.focus();
}

/** Open what an address names, if it is folded in. */
function unfold() {
  const wanted = document.getElementById(location.hash.slice(1));
  if (wanted?.matches("details")) wanted.open = true;
}

keys({ j: ["next row", () => step(1)], k: ["previous row", () => step(-1)] });
if (form) keys({ "/": ["search", () => form.elements.search.focus()] });
if (picked)
  keys({
    x: ["pick a run", () => document.activeElement?.closest("tr")?.querySelector("input")?.click()],
    c: ["compare picked runs", () => picked.requestSubmit()],
  });
addEventListener("hashchange", unfold);
unfold();
