// A person's page: it shows what the server sends, in order, and sends what the person does.
import { beliefForm } from "./belief.js";
import { Conversation } from "./conversation.js";
import { h, paragraphs } from "./dom.js";
import { Keys } from "./keys.js";
import { Labels } from "./labels.js";
import { Line } from "./line.js";
import { Sling } from "./sling.js";
import { Stage } from "./stage.js";

const KINDS = { keys: Keys, sling: Sling, conversation: Conversation, labels: Labels, line: Line };
const main = document.getElementById("main");
const connection = document.getElementById("connection");
const placeOf = document.getElementById("place");
const sleep = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

class Play {
  constructor() {
    Object.assign(this, { queue: [], busy: false, waits: 500, controls: null, trial: null, film: null, dropping: false, over: false });
    this.connect();
  }

  connect() {
    const address = location.href.replace(/^http/, "ws").replace(/[?#].*$/, "").replace(/\/$/, "");
    this.socket = new WebSocket(`${address}/socket`);
    this.socket.binaryType = "blob";
    this.socket.onopen = () => { this.waits = 500; connection.textContent = ""; this.queue = []; };
    this.socket.onmessage = ({ data }) => this.take(typeof data === "string" ? JSON.parse(data) : data);
    this.socket.onclose = ({ code }) => this.lose(code);
  }

  lose(code) {
    if (this.over) return;
    if (code === 1008) return this.page(h("h1", {}, "This page was closed"), h("p", {}, "Open your link again."));
    connection.textContent = "No connection. Trying again …";
    setTimeout(() => this.connect(), this.waits);
    this.waits = Math.min(this.waits * 2, 8000);
  }

  send(message) {
    if (this.socket.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(message));
  }

  async take(item) {
    this.queue.push(item);
    if (this.busy) return;
    this.busy = true;
    while (this.queue.length) {
      const next = this.queue.shift();
      try {
        if (next instanceof Blob) await this.picture(next);
        else this.message(next);
      } catch (error) {
        console.error(error);
      }
    }
    this.busy = false;
  }

  async picture(blob) {
    if (this.dropping || !this.stage) return;
    await this.stage.draw(blob);
    if (this.film === null) return;
    this.film();
    const { film } = this.trial;
    const now = performance.now();
    this.due = Math.max((this.due ?? 0) + film, now);
    await sleep(this.due - now);
  }

  /** Show the pictures that come as a film, and call `seen` for each. */
  watch(seen) {
    Object.assign(this, { film: seen, due: performance.now() });
  }

  /** Leave out the rest of a preview: what follows it was asked for. */
  dropFilm() {
    this.dropping = !this.landed;
    this.queue = this.queue.filter((item) => !(item instanceof Blob) || this.landed);
  }

  /** Leave out all pictures until the next turn. */
  skipFilm() {
    this.dropping = true;
    this.queue = this.queue.filter((item) => !(item instanceof Blob));
    this.send({ do: "seen" });
  }

  /** Make a button that goes on, once. */
  goButton(text) {
    return h("button", {
      type: "button", class: "primary",
      onclick: (event) => {
        event.currentTarget.disabled = true;
        this.send({ do: "go" });
      },
    }, text);
  }

  message(told) {
    const shown = {
      trial: () => this.begin(told),
      turn: () => this.turn(told),
      tick: () => this.tick(told),
      landed: () => this.land(),
      noted: () => {},
      refused: () => this.refuse(told.text),
      consent: () => this.text(told, "I agree"),
      instructions: () => this.text(told, "Go on"),
      between: () => this.text(told, "Go on"),
      questions: () => this.questions(told),
      reveal: () => this.reveal(told),
      done: () => this.finish(told),
      failed: () => { this.over = true; this.page(h("h1", {}, "Something went wrong"), h("p", {}, told.text)); },
      elsewhere: () => { this.over = true; this.page(h("h1", {}, "You play in another window"), h("p", {}, "To go on here, load this page again.")); },
    }[told.show];
    shown?.();
  }

  /** A preview has ended: what follows was asked for. */
  land() {
    Object.assign(this, { landed: true, dropping: false });
    this.controls.landed?.();
  }

  page(...content) {
    this.controls?.close();
    this.controls = this.stage = null;
    placeOf.textContent = "";
    main.replaceChildren(h("article", { class: "sheet" }, ...content));
    main.querySelector("button, input, select, textarea")?.focus({ preventScroll: true });
  }

  text({ title, text }, button) {
    this.page(title ? h("h1", {}, title) : null, ...paragraphs(text),
      this.goButton(button));
  }

  begin(told) {
    this.controls?.close();
    Object.assign(this, { trial: told, stage: new Stage(), film: null, dropping: false, landed: false });
    placeOf.textContent = told.practice ? "Practice" : told.count > 1 ? `${told.place + 1} of ${told.count}` : "";
    this.values = h("dl", { class: "values" });
    this.light = h("p", { class: "light", role: "alert", hidden: true }, "The world has changed.");
    this.task = h("p", { class: "task" }, told.page.task ?? told.task);
    this.refusal = h("p", { class: "refused", role: "alert", hidden: true });
    this.controls = new KINDS[told.kind](this, told.page);
    this.aside = h("div", { class: "aside" });
    delete main.dataset.turn;
    main.replaceChildren(h("div", { class: `game ${told.kind}` }, this.task, this.light, this.stage.element, this.values, this.refusal,
      this.controls.element, this.aside));
  }

  turn(told) {
    Object.assign(this, { film: null, dropping: false, landed: false });
    this.refusal.hidden = true;
    this.light.hidden = !told.red_light;
    this.show(told.values);
    this.stage.say();
    this.controls.show(told);
    this.ask(told);
    main.dataset.turn = told.turn;
    requestAnimationFrame(() => this.send({ do: "seen" }));
  }

  tick(told) {
    this.show(told.values);
    if (!document.hidden) this.send({ do: "seen" });
  }

  show(values) {
    const rows = Object.entries(values ?? {}).map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value)));
    this.values.replaceChildren(...rows);
  }

  /** Show what a turn asks for beside an action. */
  ask(told) {
    const { question } = this.trial;
    const say = (novel) => this.send({ do: "believe", novel });
    const title = h("h2", {}, told.title ?? (told.last ? "The episode is over" : "Ready?"));
    const earned = told.last && told.reward ? h("p", {}, `Reward ${Number(told.reward.toFixed(3))}`) : null;
    this.aside.replaceChildren();
    if (told.ask === "ready") this.stage.say(title, this.goButton("Go on"));
    else if (told.ask === "belief") this.stage.say(beliefForm(question, say));
    else if (told.ask === "none") this.stage.say(title, earned, told.asks ? beliefForm(question, say, "Say it and go on") : this.goButton("Go on"));
    else if (this.trial.kind === "labels") return;
    else if (told.asks) this.aside.append(beliefForm(question, (novel) => this.answered(novel)));
    else if (told.phase === "test") this.aside.append(this.volunteer(question));
  }

  answered(novel) {
    this.send({ do: "believe", novel });
    this.aside.replaceChildren(h("p", { class: "hint" }, `You said ${novel.toFixed(2)}. Now act.`));
  }

  volunteer(question) {
    const open = h("details", { class: "any-time" }, h("summary", {}, "Say at any time whether your world has changed"));
    open.append(beliefForm(question, (novel) => {
      this.send({ do: "believe", novel });
      open.replaceChildren(h("summary", {}, `You said ${novel.toFixed(2)}`));
      open.open = false;
    }));
    return open;
  }

  refuse(text) {
    this.controls?.refused?.();
    if (!this.refusal?.isConnected) return main.querySelector(".sheet")?.append(h("p", { class: "refused", role: "alert" }, text));
    this.refusal.textContent = text;
    this.refusal.hidden = false;
  }

  /** The truth about a trial that was played: what changed, its moment, and how all did. */
  reveal({ title, text, players, episodes, films, waiting }) {
    const row = (cells, tag = "td") => h("tr", {}, cells.map((cell) => h(tag, {}, cell)));
    const rows = players.map((each) => row([each.name, each.noticed, each.before, each.after]));
    const later = waiting ? h("p", { class: "hint" }, waiting) : this.goButton("Done");
    this.page(h("h1", {}, title), h("p", {}, text), this.beliefs(episodes), h("div", { class: "moments" }, films.map((film) => this.moment(film))),
      h("div", { class: "scroll" }, h("table", {}, h("thead", {}, row(["", "noticed", "before", "after"], "th")), h("tbody", {}, rows))),
      h("p", { class: "hint" }, "Before and after: the mean performance before the change and from it on."), later);
    main.querySelector(".sheet").classList.add("reveal");
  }

  /** What was believed in each episode, as bars; those in the changed world stand on another ground. */
  beliefs(episodes) {
    if (episodes.length > 60 || !episodes.some(([, belief]) => belief !== null)) return null;
    const bars = episodes.map(([novel, belief], at) => {
      const told = `Episode ${at + 1}${novel ? ", changed" : ""}: ${belief === null ? "nothing said" : `you said ${belief.toFixed(2)}`}`;
      const height = h("i");
      height.style.height = `${100 * (belief ?? 0)}%`;
      return h("span", { class: novel ? "tick changed" : "tick", role: "img", title: told, "aria-label": told }, height);
    });
    return h("figure", { class: "beliefs" }, h("div", {}, bars), h("figcaption", { class: "hint" }, "How sure you were of a change in each episode. A line below marks the changed world."));
  }

  moment({ title, image, lines }) {
    const spoken = lines.map(([said, answered]) => [h("span", {}, said), "\n", h("b", {}, answered), "\n"]);
    const shown = image ? h("img", { src: image, alt: title }) : h("pre", { class: "map" }, spoken.flat());
    return h("figure", {}, shown, h("figcaption", { class: "hint" }, title));
  }

  questions({ title, questions }) {
    const fields = questions.map((each) => this.field(each));
    const form = h("form", {
      onsubmit: (event) => {
        event.preventDefault();
        const answers = Object.fromEntries(fields.map(({ name, read }) => [name, read()]));
        this.send({ do: "answers", answers });
      },
    }, fields.map(({ element }) => element), h("button", { type: "submit", class: "primary" }, "Send"));
    this.page(h("h1", {}, title || "Some questions"), form);
  }

  field({ name, text, kind, options, optional }) {
    if (kind === "choice") {
      const buttons = options.map((option) => h("input", { type: "radio", name, value: option, required: !optional }));
      const labels = buttons.map((button, number) => h("label", { class: "option" }, button, options[number]));
      return { name, element: h("fieldset", {}, h("legend", {}, text), labels), read: () => buttons.find((each) => each.checked)?.value ?? "" };
    }
    const input = kind === "number"
      ? h("input", { type: "number", step: "any", name, required: !optional })
      : h("textarea", { name, rows: "3", maxlength: "4000", required: !optional });
    return { name, element: h("label", { class: "field" }, h("span", {}, text), input), read: () => input.value };
  }

  finish({ text, code }) {
    this.over = true;
    this.page(h("h1", {}, "Done"), ...paragraphs(text), code ? h("p", {}, "Your completion code:") : null, code ? h("p", { class: "code" }, code) : null);
  }
}

document.getElementById("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  localStorage.setItem("openfield-theme", root.dataset.theme);
});
new Play();
