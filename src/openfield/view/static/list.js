// Lists of runs and trials: what is typed filters at once, and keys walk through the rows.
import { keys } from "./keys.js";
import { refresh } from "./live.js";

const form = document.getElementById("filters");
const picked = document.getElementById("picked");
let waiting;

const columns = form?.querySelector(".columns");
const COLUMNS = "openfield-columns";

/** Return the columns that are chosen, or none if they are the usual ones. */
function chosen() {
  const names = [...columns.querySelectorAll(":checked")].map((each) => each.value);
  return names.join(" ") === columns.dataset.usual ? [] : names;
}

async function filter() {
  const wanted = new URLSearchParams([...new FormData(form)].filter(([name, value]) => value && name !== "column"));
  if (columns) {
    for (const name of chosen()) wanted.append("column", name);
    localStorage.setItem(COLUMNS, chosen().join(" "));
  }
  history.replaceState(null, "", `${location.pathname}${wanted.size ? `?${wanted}` : ""}`);
  await refresh();
}

form?.addEventListener("input", () => {
  clearTimeout(waiting);
  waiting = setTimeout(filter, 120);
});
form?.addEventListener("submit", (event) => { event.preventDefault(); filter(); });

function step(by) {
  const links = [...document.querySelectorAll(".rows th[scope=row] > a:first-of-type")].filter((each) => each.checkVisibility());
  const at = links.indexOf(document.activeElement?.closest("tr")?.querySelector("th[scope=row] > a:first-of-type"));
  links[Math.min(links.length - 1, Math.max(0, at + by))]?.focus();
}

keys({ j: ["next row", () => step(1)], k: ["previous row", () => step(-1)] });
if (form) keys({ "/": ["search", () => form.elements.search.focus()] });
if (picked)
  keys({
    x: ["pick a run", () => document.activeElement?.closest("tr")?.querySelector("input")?.click()],
    c: ["compare picked runs", () => picked.requestSubmit()],
  });
if (columns && !new URLSearchParams(location.search).has("column")) { // as they were chosen last
  const kept = (localStorage.getItem(COLUMNS) ?? "").split(" ").filter(Boolean);
  if (kept.length) {
    for (const each of columns.querySelectorAll("input")) each.checked = kept.includes(each.value);
    filter();
  }
}
