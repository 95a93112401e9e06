// The turn viewer: one agent, or two in step, through the turns of an episode and on to the next.
import { FrameStream, Screen } from "./frames.js";
import { keys } from "./keys.js";
import { morph } from "./live.js";
import { Panels } from "./panels.js";
import { addTruth, attach, moveCursor } from "./timeline.js";

const BATCH = 64; // turns that are fetched at once
const KEPT = 1024; // turns that are kept
const PLAIN = 250; // milliseconds of a turn without pictures
const PATIENCE = 5000; // milliseconds after which the pictures of an episode that goes on are made anew, at the earliest
const data = JSON.parse(document.getElementById("data").textContent);
const viewer = document.getElementById("viewer");

/** Turns are counted from 0, as in addresses, so their number is written beside in a way that cannot be misread. */
const ordinal = (number) => `${number}${["th", "st", "nd", "rd"][(number % 100 > 10 && number % 100 < 14) || number % 10 > 3 ? 0 : number % 10]}`;

class Side {
  constructor(given, place, changed) {
    this.head = given.head;
    this.base = `/runs/${given.head.run}/trials/${given.head.cell}`;
    this.turns = new Map([[given.turn.number, given.turn]]);
    this.pending = new Set();
    this.changed = changed;
    this.first = given.first;
    this.count = given.turns;
    this.trace = [];
    this.figure = place.querySelector(".timeline");
    this.where = place.querySelector(".where");
    this.box = place.querySelector(".screen");
    this.note = place.querySelector(".screen-note");
    this.screen = new Screen(place.querySelector("canvas"));
    this.panels = new Panels(place.querySelector(".seen"), place.querySelector(".panels"));
    this.stream = null;
  }
  number(offset) {
    return this.first + Math.min(offset, Math.max(this.count - 1, 0));
  }
  /** Show a turn, or fetch it and show it when it is here; what is shown stays until then. */
  show(offset, into) {
    const number = this.number(offset), turn = this.turns.get(number);
    if (turn && turn !== this.shown) {
      this.panels.set(turn, (each) => this.turns.get(each));
      this.shown = turn;
    }
    const at = number - this.first;
    const where = `turn ${at}, the ${ordinal(at + 1)} of ${this.count} · ${this.head.domain}${this.head.outcome === null ? " · being played" : ""}`;
    if (this.where.textContent !== where) this.where.textContent = where;
    this.fetch(number);
    this.picture(into === null || offset + 1 >= this.count ? number : number + 1, into ?? Infinity);
  }
  picture(number, into) {
    if (!this.stream) return;
    const frame = this.stream.at(number, into), lacks = this.stream.frames.length > 0 && frame === null;
    this.screen.draw(frame);
    const waiting = !this.stream.frames.length && !this.stream.over;
    const text = this.stream.message || (waiting ? "Playing it again …" : this.stream.over && !this.stream.frames.length ? "This episode has no picture." : lacks ? `The first picture is that of turn ${this.stream.frames[0].turn - this.first}.` : "");
    if (this.note.textContent !== text) this.note.textContent = text;
    this.box.classList.toggle("empty", !this.stream.frames.length || lacks);
    this.box.classList.toggle("none", !this.stream.frames.length && (this.stream.over || !this.head.draws));
  }
  fetch(number) {
    for (const at of [number, number + BATCH / 2, Math.max(number - BATCH, 0)]) {
      const from = Math.floor(at / BATCH) * BATCH;
      if (at >= this.first + this.count + BATCH || this.turns.has(at) || this.pending.has(from)) continue;
      this.pending.add(from);
      fetch(`${this.base}/turns.json?from=${from}&count=${BATCH}`)
        .then((answer) => answer.json())
        .then((answer) => {
          for (const turn of answer.turns ?? []) this.turns.set(turn.number, turn);
          if (answer.turns?.length < BATCH) this.pending.add(from); // a large answer was cut: ask for single turns
          for (const old of this.turns.keys()) { if (this.turns.size <= KEPT) break; this.turns.delete(old); this.pending.delete(Math.floor(old / BATCH) * BATCH); }
          this.shown = null;
          this.changed();
          if (!this.turns.has(number) && number < answer.count) this.single(number);
        })
        .catch(() => this.pending.delete(from));
    }
  }
  single(number) {
    fetch(`${this.base}/turns.json?from=${number}&count=1`).then((answer) => answer.json())
      .then((answer) => { for (const turn of answer.turns ?? []) this.turns.set(turn.number, turn); this.changed(); });
  }
  /** Take another episode: where its turns begin, its numbers, and its pictures. */
  enter(episode, given, trace) {
    this.first = given.first;
    this.count = given.turns;
    this.trace = trace;
    this.turns.set(given.turn.number, given.turn);
    if (this.head.draws !== false) {
      this.stream?.close();
      this.stream = new FrameStream(`${this.base}/episodes/${Math.min(given.turn.episode, episode)}/frames`, this.changed);
    }
    this.drawn = performance.now();
    moveCursor(this.figure, given.turn.episode);
  }
  /** Take what is new of an episode that goes on. */
  renew(given, trace, figure) {
    this.head = given.head;
    morph(this.figure, figure);
    for (const [number, turn] of this.turns) if (turn.reply === null) this.turns.delete(number);
    const grown = given.turns > this.count, batch = Math.floor(this.number(Infinity) / BATCH) * BATCH;
    for (const from of this.pending) if (from >= batch) this.pending.delete(from);
    this.count = given.turns;
    this.trace = trace;
    this.shown = null;
    if (grown) this.film(given.turn.episode);
    moveCursor(this.figure, given.turn.episode);
  }
  /** Have the pictures made anew; the old ones are shown until there are as many. */
  film(episode) {
    const old = this.stream, now = performance.now();
    if (!old?.over || now < this.drawn + PATIENCE) return;
    this.drawn = now;
    const coming = new FrameStream(`${this.base}/episodes/${episode}/frames`, () => {
      if (this.stream === old && (coming.over || coming.frames.length > old.frames.length)) this.stream = coming;
      this.changed();
    });
  }
}

const places = [...viewer.querySelectorAll(".player")];
const sides = data.sides.map((given, index) => new Side(given, places[index], draw));
const scrub = viewer.querySelector(".scrub input");
const traceCanvas = viewer.querySelector(".trace");
const playButton = viewer.querySelector('[data-do="play"]');
const speed = viewer.querySelector(".speed select");
const state = { episode: data.sides[0].turn.episode, offset: data.sides[0].turn.number - data.sides[0].first, into: null, playing: false, last: 0, spent: 0, loading: false };
const beside = data.sides.length > 1 ? `?with=${encodeURIComponent(data.sides[1].head.cell)}` : "";
const longest = () => Math.max(...sides.map((side) => side.count), 1);
const episodes = () => Math.max(sides[0].head.episodes + sides[0].head.under_way, state.episode + 1);

let asked = 0;
/** Go to an episode, at its start, at its end (-1), or where the reader is by then (null). */
async function enter(episode, offset = 0) {
  if (episode < 0 || (episode >= episodes() && episode !== 0)) return pause();
  const mine = ++asked;
  state.loading = true;
  const answer = await fetch(`${sides[0].base}/episodes/${episode}.json${beside}`).then((each) => each.json()).catch(() => ({ error: "gone" }));
  if (mine !== asked) return;
  state.loading = false;
  if (answer.error) return pause();
  state.episode = episode;
  sides.forEach((side, index) => side.enter(episode, answer.sides[index], answer.traces[index]));
  state.offset = Math.min(offset === null ? state.offset : offset < 0 ? Infinity : offset, longest() - 1);
  state.into = null;
  state.spent = 0;
  drawTrace();
  draw();
}

/** Show what is new of a trial that goes on. A reader at the last turn that has a reply stays at the last one. */
async function renew(fresh) {
  const answer = await fetch(`${sides[0].base}/episodes/${state.episode}.json${beside}`).then((each) => each.json()).catch(() => ({ error: "gone" }));
  if (answer.error || state.loading || answer.sides[0].first !== sides[0].first) return;
  const last = state.offset >= longest() - 2 && !state.playing;
  const figures = fresh.querySelectorAll(".timeline");
  sides.forEach((side, index) => side.renew(answer.sides[index], answer.traces[index], figures[index]));
  attach(pick);
  if (last && sides[0].head.turns > sides[0].first + sides[0].count) return void enter(episodes() - 1, -1);
  if (last) state.offset = Math.max(longest() - (sides[0].head.outcome === null ? 2 : 1), 0);
  drawTrace();
  draw();
}

const pick = (number) => { pause(); enter(number); };
let drawing = false;
/** Draw soon; several wishes become one drawing. */
function draw() {
  if (drawing) return;
  drawing = true;
  requestAnimationFrame(() => {
    drawing = false;
    for (const side of sides) side.show(state.offset, state.into);
    if (Number(scrub.max) !== longest() - 1) scrub.max = longest() - 1;
    if (Number(scrub.value) !== state.offset) scrub.value = state.offset;
    scrub.setAttribute("aria-valuetext", `turn ${state.offset} of episode ${state.episode}`);
    drawMark();
    note();
  });
}

let noted = 0;
/** Keep the address, the title and the links up to date, a few times a second. */
function note() {
  noted ||= setTimeout(() => {
    noted = 0;
    const number = sides[0].number(state.offset), path = `${sides[0].base}/turns/${number}`;
    if (location.pathname !== path) history.replaceState(null, "", path + beside);
    const title = `episode ${state.episode}, turn ${number - sides[0].first}`;
    document.getElementById("title").textContent = document.getElementById("crumb").textContent = title;
    document.title = `${sides[0].head.agent}, ${title} – openfield`;
    for (const link of document.querySelectorAll('.tools a[href*=".json"]')) link.href = `${path}.json${beside}`;
    viewer.querySelector(".read").href = `${sides[0].base}/turns?from=${number}`;
    const film = viewer.querySelector(".film");
    const { frames, over } = sides[0].stream ?? { frames: [] };
    if (film) film.hidden = !frames.length && (over || !sides[0].head.draws); // only pictures tell whether a domain draws that is not at hand
    if (film && !film.hidden) film.href = `${sides[0].base}/episodes/${state.episode}/film.webp`;
  }, 150);
}

function step(by) {
  pause();
  move(by);
}

function move(by) {
  const next = state.offset + by;
  state.into = null;
  if (next < 0) return void (state.episode > 0 && enter(state.episode - 1, -1));
  if (next >= longest()) return void enter(state.episode + 1);
  state.offset = next;
  draw();
}

function pause() {
  state.playing = false;
  state.into = null;
  sayPlaying();
  draw();
}

function play() {
  if (state.playing) return pause();
  state.playing = true;
  state.last = performance.now();
  state.spent = 0;
  sayPlaying();
  requestAnimationFrame(tick);
}

function sayPlaying() {
  playButton.textContent = state.playing ? "❚❚ Pause" : "▶ Play";
}

/** How many milliseconds the way to the next turn lasts as far as its pictures are here, and whether they all are. */
function way() {
  const drawn = sides.filter((side) => side.stream && !(side.stream.over && !side.stream.frames.length));
  if (!drawn.length) return [PLAIN, true];
  let lasts = 0, whole = true;
  for (const side of drawn) {
    if (state.offset + 1 >= side.count) continue;
    const number = side.number(state.offset + 1);
    whole &&= side.stream.has(number);
    lasts = Math.max(lasts, side.stream.lasts(number));
  }
  return [lasts, whole];
}

function tick(now) {
  if (!state.playing) return;
  const passed = Math.min(now - state.last, 250) * Number(speed.value);
  state.last = now;
  if (!state.loading) {
    state.spent += passed;
    while (state.playing) {
      const [lasts, whole] = way();
      if (state.spent < lasts || !whole) { // on the way; where the replay is behind, wait for it
        state.spent = Math.min(state.spent, lasts);
        state.into = state.spent;
        break;
      }
      state.spent -= lasts;
      state.into = null;
      if (state.offset + 1 >= longest()) {
        state.spent = 0;
        if (state.episode + 1 >= episodes()) pause();
        else enter(state.episode + 1);
        break;
      }
      state.offset += 1;
    }
    draw();
  }
  if (state.playing) requestAnimationFrame(tick);
}

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
let ground = null;

/** Draw belief and performance along the turns of the episode, above the slider. */
function drawTrace() {
  const ratio = devicePixelRatio || 1, width = traceCanvas.clientWidth, height = traceCanvas.clientHeight;
  if (!width) return;
  traceCanvas.width = Math.round(width * ratio);
  traceCanvas.height = Math.round(height * ratio);
  const context = traceCanvas.getContext("2d", { willReadFrequently: true });
  context.scale(ratio, ratio);
  const inset = 8, span = width - 2 * inset, last = Math.max(longest() - 1, 1);
  const x = (index) => inset + (span * index) / last, y = (value) => 3 + (1 - Math.min(Math.max(value, 0), 1)) * (height - 6);
  const probe = document.createElement("i");
  document.body.append(probe);
  const resolve = (name) => { probe.style.color = `var(${name})`; return getComputedStyle(probe).color; };
  sides.forEach((side, which) => {
    for (const [field, name] of [[2, "--performance"], [1, "--belief"]]) {
      context.strokeStyle = resolve(name);
      context.setLineDash(which ? [3, 3] : []);
      context.lineWidth = 1.5;
      context.beginPath();
      let begun = false;
      side.trace.forEach((point, index) => {
        if (point[field] === null) return;
        begun ? context.lineTo(x(index), y(point[field])) : context.moveTo(x(index), y(point[field]));
        begun = true;
      });
      context.stroke();
    }
    context.setLineDash([]);
    context.fillStyle = resolve("--good");
    side.trace.forEach((point, index) => { if (point[0] > 0) context.fillRect(x(index) - 0.5, height - 3, 1.5, 3); });
  });
  probe.remove();
  ground = context.getImageData(0, 0, traceCanvas.width, traceCanvas.height);
}

function drawMark() {
  if (!ground) return;
  const context = traceCanvas.getContext("2d", { willReadFrequently: true }), ratio = devicePixelRatio || 1;
  context.putImageData(ground, 0, 0);
  const x = 8 + ((traceCanvas.clientWidth - 16) * state.offset) / Math.max(longest() - 1, 1);
  context.fillStyle = colour("--mark") || "#888";
  context.fillRect(x - 0.5, 0, 1, traceCanvas.clientHeight * ratio);
}

const SPEEDS = [...speed.options].map((each) => each.value);
function faster(by) {
  speed.selectedIndex = Math.min(Math.max(speed.selectedIndex + by, 0), SPEEDS.length - 1);
}

// Find the next turn that fits, from the one that is shown on, and then from the start.
const form = document.getElementById("search"), answered = form.querySelector("[role=status]");
const findButton = viewer.querySelector('[data-do="find"]');

function openSearch(open = form.hidden) {
  form.hidden = !open;
  findButton.setAttribute("aria-expanded", String(open));
  open ? form.elements.action.focus() : findButton.focus();
}

async function find() {
  const wanted = new URLSearchParams([...new FormData(form)].filter(([, value]) => value));
  if (!wanted.size) return;
  pause();
  const here = sides[0].number(state.offset);
  for (let from = here + 1, wrapped = false; ;) {
    wanted.set("from", from);
    const part = await fetch(`${sides[0].base}/search.json?${wanted}`).then((each) => each.json()).catch(() => ({ error: "The server does not answer." }));
    if (part.error) return void (answered.textContent = part.error);
    const found = part.found[0];
    if (found) {
      await goTo(found.episode, found.number);
      answered.textContent = `Found: episode ${found.episode}, turn ${found.number - sides[0].first}${found.number <= here ? ", from the start again" : ""}.`;
      return;
    }
    if (part.next === null && wrapped) return void (answered.textContent = "No turn fits.");
    wrapped ||= part.next === null;
    from = part.next ?? 0;
  }
}

async function goTo(episode, number) {
  if (episode !== state.episode) await enter(episode);
  state.offset = number - sides[0].first;
  draw();
}

form.addEventListener("submit", (event) => { event.preventDefault(); find(); });
form.addEventListener("keydown", (event) => { if (event.key === "Escape") openSearch(false); });

const DO = {
  find: () => openSearch(),
  "episode-back": () => enter(state.offset > 0 ? state.episode : state.episode - 1),
  back: () => step(-1),
  play,
  next: () => step(1),
  "episode-next": () => enter(state.episode + 1),
};
for (const button of viewer.querySelectorAll("[data-do]")) button.addEventListener("click", () => DO[button.dataset.do]());
scrub.addEventListener("input", () => { pause(); state.offset = Number(scrub.value); draw(); });
keys({
  " ": ["play or pause", play],
  ArrowRight: ["next turn", DO.next],
  ArrowLeft: ["turn before", DO.back],
  PageDown: ["next episode", DO["episode-next"]],
  PageUp: ["episode before", DO["episode-back"]],
  Home: ["first turn of the episode", () => { pause(); state.offset = 0; draw(); }],
  End: ["last turn of the episode", () => { pause(); state.offset = longest() - 1; draw(); }],
  "+": ["faster", () => faster(1)],
  "-": ["slower", () => faster(-1)],
  f: ["this episode as a film", () => viewer.querySelector(".film:not([hidden])")?.click()],
  "/": ["find turns", () => openSearch(true)],
  l: ["the transcript, from here on", () => viewer.querySelector(".read").click()],
  u: ["the trial", () => location.assign(sides[0].base + beside)],
});
attach(pick);
addEventListener("openfield:fresh", (event) => renew(event.detail));
addTruth(() => state.episode);
new ResizeObserver(() => { drawTrace(); drawMark(); }).observe(traceCanvas);
new MutationObserver(() => { drawTrace(); drawMark(); }).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
for (const side of sides) side.show(state.offset, null);
enter(state.episode, null);
