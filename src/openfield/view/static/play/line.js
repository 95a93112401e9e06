// Play with typed actions, where they have no keys.
import { h } from "./dom.js";

export class Line {
  constructor(play, { hint, space }) {
    this.play = play;
    this.line = h("input", { type: "text", class: "line", autocomplete: "off", "aria-label": hint, placeholder: hint });
    this.element = h("form", { class: "say", onsubmit: (event) => { event.preventDefault(); this.act(); } },
      this.line, h("button", { type: "submit", class: "primary" }, "Act"), h("p", { class: "hint" }, space));
  }

  act() {
    if (this.active) this.play.send({ do: "act", act: this.line.value });
  }

  show(turn) {
    this.active = turn.ask === "act";
    if (this.active) this.line.focus({ preventScroll: true });
  }

  refused() {
    this.active = true;
  }

  close() {}
}
