// Play by labelling: one picture after the other, with examples of the known classes beside it.
import { beliefForm } from "./belief.js";
import { h, isTyping } from "./dom.js";

export class Labels {
  constructor(play, { known, examples }) {
    Object.assign(this, { play, known, examples, labels: [], at: 0, asked: 0, turn: {} });
    this.element = h("div", { class: "labels" });
    this.stop = new AbortController();
    addEventListener("keydown", (event) => this.key(event), { signal: this.stop.signal });
  }

  show(turn) {
    this.turn = turn;
    if (turn.examples?.length) this.examples = turn.examples;
    if (turn.stage === "label") {
      this.asked = 0;
      this.labels = turn.pictures.concat(turn.pictures.length ? [] : turn.ids).map(() => null);
      this.at = 0;
    }
    this.draw();
  }

  draw() {
    const drawn = { learn: () => this.learn(), label: () => this.label(), buy: () => this.buy() }[this.turn.stage];
    this.element.replaceChildren(...(drawn ? drawn() : []));
  }

  learn() {
    const classes = this.examples.map(({ label, pictures }) =>
      h("figure", { class: "class" }, h("figcaption", {}, `Class ${label}`), h("div", {}, pictures.map((src) => this.image(src)))));
    return [h("div", { class: "classes" }, classes)];
  }

  label() {
    const { pictures, ids } = this.turn;
    const count = this.labels.length;
    const done = this.labels.every((label) => label !== null);
    const one = pictures.length ? this.image(pictures[this.at], "large") : h("p", { class: "sample" }, ids[this.at]);
    const choices = Array.from({ length: this.known }, (_, number) => this.choice(number + 1));
    return [
      h("p", { class: "hint" }, `Batch ${this.turn.round + 1}, picture ${this.at + 1} of ${count}. Which class is it?`),
      h("div", { class: "desk" }, h("div", { class: "one" }, one), h("div", { class: "choices" }, choices, this.choice(0))),
      this.strip((number) => { this.at = number; this.draw(); }),
      done ? beliefForm(this.play.trial.question, (novel) => this.submit(novel), "Submit the batch") : null,
    ].filter(Boolean);
  }

  choice(number) {
    const example = this.examples.find(({ label }) => label === number)?.pictures[0];
    const chosen = this.labels[this.at] === number;
    return h("button", { type: "button", class: "choice", "aria-pressed": String(chosen), onclick: () => this.choose(number) },
      example ? this.image(example) : null, h("span", {}, number ? `${number}` : "None of these"), h("kbd", {}, String(number)));
  }

  strip(pick, chosen = () => false) {
    const { pictures, ids } = this.turn;
    return h("div", { class: "strip" }, this.labels.map((label, number) =>
      h("button", {
        type: "button", class: number === this.at ? "now" : "", onclick: () => pick(number), "aria-pressed": String(chosen(number)),
        "aria-label": `Picture ${number + 1}${label === null ? "" : `, class ${label || "none"}`}`,
      }, pictures.length ? this.image(pictures[number]) : ids[number].slice(0, 4), h("span", {}, label === null ? " " : label || "–"))));
  }

  choose(number) {
    if (this.turn.stage !== "label") return;
    this.labels[this.at] = number;
    const open = this.labels.findIndex((label, at) => label === null && at > this.at);
    const next = open >= 0 ? open : this.labels.indexOf(null);
    if (next >= 0) this.at = next;
    this.draw();
    if (next < 0) this.element.querySelector(".belief input")?.focus();
  }

  submit(novel) {
    this.play.send({ do: "believe", novel });
    this.play.send({ do: "act", act: { labels: this.labels } });
  }

  buy() {
    const bought = new Map(this.turn.bought.map(([number, label]) => [number, label]));
    const picked = new Set();
    this.at = -1; // no picture is being labelled
    const ask = h("button", { type: "button", disabled: true, onclick: () => {
      this.asked = picked.size;
      this.play.send({ do: "act", act: { buy: [...picked] } });
    } }, "Ask for the true class");
    const strip = this.strip((number) => {
      if (!picked.delete(number)) picked.add(number);
      strip.children[number].setAttribute("aria-pressed", String(picked.has(number)));
      ask.disabled = !picked.size;
    });
    for (const [number, label] of bought) strip.children[number].append(h("b", {}, `is ${label}`));
    const short = bought.size < this.asked ? `You are told ${bought.size} of ${this.asked}: more may not be asked for in this batch. ` : "";
    return [
      h("p", { class: "hint" }, this.turn.message || `${short}You may ask for the true class of some pictures: choose them, then ask. Or go on.`),
      strip,
      h("div", { class: "row" },
        ask,
        h("button", { type: "button", class: "primary", onclick: () => this.play.send({ do: "act", act: {} }) }, "Next batch")),
    ];
  }

  image(src, kind = "") {
    return h("img", { src, alt: "", class: kind });
  }

  key(event) {
    if (isTyping(event) || event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.("input")) return;
    if (/^\d$/.test(event.key) && Number(event.key) <= this.known) this.choose(Number(event.key));
  }

  close() {
    this.stop.abort();
  }
}
