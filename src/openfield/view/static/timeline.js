// The timeline of a trial: which episode the pointer is at, which one is open, and where a reader guesses the change.
import { keys } from "./keys.js";

const figures = () => [...document.querySelectorAll(".timeline")];
const countOf = (figure) => Number(figure.dataset.episodes);

/** Let readers pick an episode: `pick(number, figure)` is called when one is clicked. */
export function attach(pick) {
  for (const figure of figures()) {
    const drawing = figure.querySelector("svg.episodes");
    if (!drawing || figure.dataset.kept) continue;
    figure.dataset.kept = "yes";
    const find = (event) => {
      const box = drawing.getBoundingClientRect(), count = countOf(figure);
      return Math.min(Math.max(Math.floor(((event.clientX - box.left) / box.width) * count), 0), count - 1);
    };
    drawing.addEventListener("pointermove", (event) => read(figure, find(event)));
    drawing.addEventListener("pointerleave", () => read(figure, figure.dataset.at ?? null));
    drawing.addEventListener("click", (event) => pick(find(event), figure));
  }
}

/** Say in words what an episode was like. */
function read(figure, number) {
  const place = figure.querySelector(".at-pointer");
  const columns = figure.dataset.values.split(";").filter(Boolean).map((each) => each.split(","));
  if (number === null || number === undefined || !columns.length) return void (place.textContent = "");
  const size = Math.ceil(countOf(figure) / columns.length);
  const [performance, belief] = columns[Math.min(Math.floor(number / size), columns.length - 1)];
  const parts = [`episode ${number}`];
  if (performance !== "None") parts.push(`performance ${Number(performance).toFixed(2)}`);
  if (belief !== "None") parts.push(`belief ${Number(belief).toFixed(2)}`);
  place.textContent = parts.join(" · ");
}

/** Mark the episode that is open. */
export function moveCursor(figure, number) {
  const cursor = figure.querySelector(".cursor");
  if (!cursor) return;
  const count = countOf(figure), known = number < count;
  cursor.setAttribute("visibility", known ? "visible" : "hidden");
  if (!known) return;
  cursor.firstElementChild.setAttribute("x", `${(100 * number) / count}%`);
  cursor.firstElementChild.style.width = `max(${100 / count}%, 2px)`;
  figure.dataset.at = number;
  read(figure, number);
}

const isHidden = () => document.documentElement.dataset.truth === "hidden";
const guessKey = () => `openfield-guess ${figures()[0]?.dataset.cell}`;

/** Show what is true, or hide it. */
export function turnTruth() {
  const root = document.documentElement;
  if (isHidden()) delete root.dataset.truth;
  else root.dataset.truth = "hidden";
  localStorage.setItem("openfield-truth", isHidden() ? "hidden" : "shown");
  showTruth();
}

/** Note where the reader thinks that the world changes. */
export function guess(number) {
  sessionStorage.setItem(guessKey(), String(number));
  showTruth();
}

/** Say whether the truth is hidden, and how good a guess was. */
export function showTruth() {
  for (const button of document.querySelectorAll(".truth-button")) {
    button.textContent = isHidden() ? "Show the truth" : "Hide the truth";
    button.setAttribute("aria-pressed", String(isHidden()));
  }
  const said = sessionStorage.getItem(guessKey());
  for (const figure of figures()) {
    const line = figure.querySelector(".guess");
    if (!line) continue;
    line.setAttribute("visibility", said === null ? "hidden" : "visible");
    for (const name of ["x1", "x2"])
      line.firstElementChild.setAttribute(name, `${(100 * Number(said)) / countOf(figure)}%`);
  }
  const result = document.querySelector(".guess-result"), onset = figures()[0]?.dataset.onset;
  if (!result) return;
  result.hidden = said === null;
  const off = Number(said) - Number(onset);
  result.textContent = said === null ? ""
    : onset === undefined ? `You said that the world changes at episode ${said}. It does not change.`
    : off === 0 ? `You said that the world changes at episode ${said}, and it does.`
    : `You said that the world changes at episode ${said}. It changes at ${onset}: ${Math.abs(off)} ${off < 0 ? "too early" : "late"}.`;
}

/** Add what all pages of a trial can do with the truth; `current()` is the episode that a guess means. */
export function addTruth(current) {
  for (const button of document.querySelectorAll(".truth-button")) button.addEventListener("click", turnTruth);
  keys({
    r: ["show or hide what is true", turnTruth],
    g: ["guess that the world changes here", () => guess(current())],
  });
  addEventListener("openfield:fresh", showTruth);
  showTruth();
}

/** Add keys that lead to the trials of the same agent before and after. */
export function addWalk() {
  const go = (name) => () => document.querySelector(`[data-walk="${name}"]`)?.click();
  keys({ n: ["next trial of this agent", go("after")], p: ["trial before of this agent", go("before")] });
}
