// The page of a trial: its timeline, another agent beside it, and a search in its turns.
import { keys } from "./keys.js";
import { addTruth, addWalk, attach } from "./timeline.js";

const trial = document.getElementById("trial");
const base = trial.dataset.base;
const beside = () => (trial.dataset.with ? `?with=${encodeURIComponent(trial.dataset.with)}` : "");
let pointed = 0;

const listen = () => attach((number) => location.assign(`${base}/episodes/${number}${beside()}`));
listen();
addEventListener("openfield:fresh", listen);
addEventListener("pointermove", (event) => {
  const figure = event.target.closest?.(".timeline"), drawing = figure?.querySelector("svg.episodes");
  if (!drawing) return;
  const box = drawing.getBoundingClientRect(), count = Number(figure.dataset.episodes);
  pointed = Math.min(Math.max(Math.floor(((event.clientX - box.left) / box.width) * count), 0), count - 1);
});
addTruth(() => pointed);

document.getElementById("beside")?.addEventListener("change", (event) => {
  location.assign(event.target.value ? `${base}?with=${encodeURIComponent(event.target.value)}` : base);
});

// The search asks for one part after the other, so that a long trial answers at once.
const form = document.getElementById("search"), list = document.getElementById("found");
const said = document.getElementById("found-count");
let search = 0;

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const mine = ++search, wanted = new URLSearchParams();
  for (const [name, value] of new FormData(form)) if (value) wanted.set(name, value);
  list.replaceChildren();
  if (![...wanted].length) return void (said.textContent = "");
  let from = 0, count = 0;
  while (from !== null && count < 200) {
    wanted.set("from", from);
    const answer = await fetch(`${base}/search.json?${wanted}`).catch(() => null);
    if (mine !== search) return;
    const part = answer ? await answer.json() : { error: "The server does not answer." };
    if (part.error) return void (said.textContent = part.error);
    for (const each of part.found) list.append(item(each));
    count += part.found.length;
    from = part.next;
    const turns = count === 1 ? "1 turn" : `${count} turns`;
    said.textContent = from === null ? (count ? `${turns} found.` : "No turn fits.")
      : count >= 200 ? `The first ${turns}, as far as turn ${from}.`
      : `${turns} found; at turn ${from} of ${part.turns} …`;
  }
});

function item(found) {
  const line = document.createElement("li"), link = document.createElement("a");
  link.href = `${base}/turns/${found.number}${beside()}`;
  link.textContent = `turn ${found.number}`;
  const rest = document.createElement("span");
  rest.textContent = ` in episode ${found.episode} `;
  line.append(link, rest);
  if (found.action) line.append(code(found.action));
  if (found.belief !== null) line.append(mark("pill", `believes ${found.belief.toFixed(2)}`));
  if (found.note) line.append(mark("soft", ` ${found.note}`));
  return line;
}

function code(text) {
  const made = document.createElement("code");
  made.textContent = text;
  return made;
}

function mark(kind, text) {
  const made = document.createElement("span");
  made.className = kind;
  made.textContent = text;
  return made;
}

keys({
  Enter: ["watch from the start", () => document.querySelector("a.button.main")?.click()],
  "/": ["find turns", () => form.elements.action.focus()],
});
addWalk();
