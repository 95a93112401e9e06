// Curves: values under the pointer or at the arrow keys, one agent brought to the front, overlaid or side by side.
import { keys } from "./keys.js";

const root = document.documentElement;
const tip = document.createElement("div");
tip.className = "tip";
tip.hidden = true;
tip.setAttribute("role", "status");
document.body.append(tip);

function layout(name) {
  root.dataset.layout = name;
  localStorage.setItem("openfield-layout", name);
  for (const each of document.querySelectorAll("[data-layout]:not(html)"))
    each.setAttribute("aria-pressed", String(each.dataset.layout === name));
}

function format(value) {
  return value === null || value === undefined ? "–" : value.toFixed(2);
}

function nearest(points, at) {
  return points.reduce((best, point) => (Math.abs(point[0] - at) < Math.abs(best[0] - at) ? point : best), points[0]);
}

/** Return the point of a curve at an episode; without values where the curve does not reach. A point may stand for several episodes. */
function valuesAt(points, at) {
  const near = nearest(points, at);
  const step = Math.min(...points.slice(1).map(([each], index) => each - points[index][0]));
  const reach = Number.isFinite(step) ? step / 2 : 0;
  return near && Math.abs(near[0] - at) <= reach ? near : [at, null, null];
}

function show(svg, at, x, y) {
  const { agents, onset, unit } = JSON.parse(svg.dataset.curves);
  const where = nearest(agents.flatMap(({ points }) => points), at)[0];
  const rows = agents.map(({ name, points }) => [name, valuesAt(points, where)]);
  const title = document.createElement("b");
  title.textContent = onset
    ? where === 0 ? "at the onset" : `${Math.abs(where).toLocaleString("en")} ${unit}${Math.abs(where) === 1 ? "" : "s"} ${where < 0 ? "before" : "after"} the onset`
    : `${unit} ${where.toLocaleString("en")}`;
  const table = document.createElement("table");
  for (const [name, [, performance, belief]] of rows) {
    const row = table.insertRow();
    for (const [text, kind] of [[name, ""], [format(performance), "p"], [format(belief), "b"]]) {
      const cell = row.insertCell();
      cell.textContent = text;
      if (kind) cell.className = kind;
    }
  }
  tip.replaceChildren(title, table);
  const single = svg.querySelector(".single:hover");
  if (single) tip.append(`${single.getAttribute("aria-label")}: click to open it`);
  place(x, y);
  mark(svg, where);
}

function place(x, y) {
  tip.hidden = false;
  const wide = tip.offsetWidth, high = tip.offsetHeight;
  tip.style.left = `${Math.max(8, Math.min(innerWidth - wide - 8, x + 14 + wide > innerWidth ? x - wide - 14 : x + 14))}px`;
  tip.style.top = `${Math.max(8, Math.min(innerHeight - high - 8, y + 14))}px`;
}

function scale(svg) {
  const { left, right, first, last } = JSON.parse(svg.dataset.curves);
  const box = svg.getBoundingClientRect(), unit = box.width / svg.viewBox.baseVal.width;
  const span = Math.max(1, last - first);
  return {
    at: (x) => Math.min(last, Math.max(first, first + ((x - box.left) / unit - left) / (right - left) * span)),
    x: (at) => left + (right - left) * (at - first) / span,
    page: (at) => box.left + unit * (left + (right - left) * (at - first) / span),
    box,
  };
}

function mark(svg, at) {
  let line = svg.querySelector(".cursor");
  if (!line) {
    line = document.createElementNS("http://www.w3.org/2000/svg", "path");
    line.setAttribute("class", "cursor");
    svg.append(line);
  }
  const x = scale(svg).x(at);
  line.setAttribute("d", `M${x} 14V${svg.viewBox.baseVal.height - 20}`);
}

function hide(svg) {
  tip.hidden = true;
  svg?.querySelector(".cursor")?.remove();
  svg?.querySelector(".single.at")?.classList.remove("at");
}

function raise(from, agent) {
  const box = from.closest(".scenario") ?? document;
  for (const each of box.querySelectorAll(".curves [data-agent]")) {
    each.classList.toggle("faded", agent !== null && each.dataset.agent !== agent);
    each.classList.toggle("raised", each.dataset.agent === agent);
  }
}

/** Walk through the single trials of a drawing: the one that is chosen is opened with Enter. */
function walk(svg, by) {
  const singles = [...svg.querySelectorAll(".single")].filter((each) => each.checkVisibility());
  const now = singles.findIndex((each) => each.classList.contains("at"));
  if (!singles.length) return;
  singles[now]?.classList.remove("at");
  const chosen = singles[(now + by + singles.length + (now < 0 && by < 0 ? 1 : 0)) % singles.length];
  chosen.classList.add("at");
  const box = svg.getBoundingClientRect();
  say(`${chosen.getAttribute("aria-label")}, Enter opens it`, box.left + box.width / 3, box.top);
}

function say(text, x, y) {
  tip.textContent = text;
  place(x, y);
}

document.addEventListener("pointermove", (event) => {
  const svg = event.target.closest?.(".curves");
  if (svg) show(svg, scale(svg).at(event.clientX), event.clientX, event.clientY);
});
document.addEventListener("pointerout", (event) => {
  const svg = event.target.closest?.(".curves");
  if (svg && !svg.contains(event.relatedTarget)) hide(svg);
  const row = event.target.closest?.("tr[data-agent], text[data-agent]");
  if (row && !row.contains(event.relatedTarget)) raise(row, null);
});
document.addEventListener("pointerover", (event) => {
  const row = event.target.closest?.("tr[data-agent], text[data-agent]");
  if (row) raise(row, row.dataset.agent);
});
document.addEventListener("focusin", (event) => {
  const row = event.target.closest?.("tr[data-agent]");
  if (row) raise(row, row.dataset.agent);
});
document.addEventListener("focusout", (event) => {
  const row = event.target.closest?.("tr[data-agent]");
  if (row) raise(row, null);
  const svg = event.target.closest?.(".curves");
  if (svg) hide(svg);
});
document.addEventListener("keydown", (event) => {
  const svg = event.target.closest?.(".curves");
  if (!svg) return;
  const along = { ArrowUp: -1, ArrowDown: 1 }[event.key], chosen = svg.querySelector(".single.at");
  if (along || (event.key === "Enter" && chosen)) {
    event.preventDefault();
    return along ? walk(svg, along) : location.assign(chosen.getAttribute("href"));
  }
  const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (!by) return;
  event.preventDefault();
  const { agents, first, last } = JSON.parse(svg.dataset.curves);
  const ats = [...new Set(agents.flatMap(({ points }) => points.map(([at]) => at)))].sort((a, b) => a - b);
  const now = ats.indexOf(Number(svg.dataset.at ?? NaN));
  const at = now < 0 ? Math.max(first, Math.min(last, 0)) : ats[Math.min(ats.length - 1, Math.max(0, now + by))];
  svg.dataset.at = at;
  const { page, box } = scale(svg);
  show(svg, at, page(at), box.top + box.height / 3);
});
document.addEventListener("click", (event) => {
  const wanted = event.target.closest?.("button[data-layout]");
  if (wanted) layout(wanted.dataset.layout);
});
keys({ "↑ ↓": ["single trials of the curves in focus; Enter opens one", () => {}] });
keys({ o: ["agents overlaid or side by side", () => layout(root.dataset.layout === "side" ? "overlaid" : "side")] });
layout(localStorage.getItem("openfield-layout") ?? "overlaid");
addEventListener("openfield:fresh", () => layout(root.dataset.layout));
