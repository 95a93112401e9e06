// The list of runs: what is typed filters at once, without leaving the page.
import { keys } from "./keys.js";
import { refresh } from "./live.js";

const form = document.getElementById("filters");
let waiting;

async function filter() {
  const wanted = new URLSearchParams([...new FormData(form)].filter(([, value]) => value));
  history.replaceState(null, "", `${location.pathname}${wanted.size ? `?${wanted}` : ""}`);
  await refresh();
}

form.addEventListener("input", () => {
  clearTimeout(waiting);
  waiting = setTimeout(filter, 120);
});
form.addEventListener("submit", (event) => { event.preventDefault(); filter(); });

function step(by) {
  const links = [...document.querySelectorAll(".runs th[scope=row] a")];
  const at = links.indexOf(document.activeElement?.closest("tr")?.querySelector("th[scope=row] a"));
  links[Math.min(links.length - 1, Math.max(0, at + by))]?.focus();
}

keys({
  "/": ["search", () => form.elements.search.focus()],
  j: ["next run", () => step(1)],
  k: ["previous run", () => step(-1)],
  x: ["pick a run", () => document.activeElement?.closest("tr")?.querySelector("input")?.click()],
  c: ["compare picked runs", () => document.getElementById("picked").requestSubmit()],
});
