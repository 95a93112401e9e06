// Play with keys: on a keyboard, or with buttons on a screen that is touched. Where time runs, keys are held.
import { h, isTyping, keyName, keyOf } from "./dom.js";

export class Keys {
  constructor(play, { actions, milliseconds }) {
    Object.assign(this, { play, actions, milliseconds, held: [], running: false, active: false, sent: null });
    const named = actions.map((action, number) => [action, number]).filter(([action]) => action.label);
    this.buttons = named.map(([action, number]) => this.button(action, number));
    this.element = h("div", { class: "pad" }, this.buttons.map((made) => made.element));
    this.stop = new AbortController();
    addEventListener("keydown", (event) => this.down(event), { signal: this.stop.signal });
    addEventListener("keyup", (event) => this.up(keyOf(event)), { signal: this.stop.signal });
    addEventListener("blur", () => this.release(), { signal: this.stop.signal });
    document.addEventListener("visibilitychange", () => document.hidden && this.pause(), { signal: this.stop.signal });
  }

  button(action, number) {
    const keys = this.actions.filter((other) => other === action || (!other.label && this.same(other, number)));
    const caps = keys.map((each) => h("kbd", {}, each.keys.map(keyName).join(" + "))).filter((cap) => cap.textContent);
    const element = h("button", { type: "button", class: "key" }, action.label, caps);
    const name = `button ${number}`;
    element.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      element.setPointerCapture(event.pointerId);
      this.press(name, number);
    });
    for (const kind of ["pointerup", "pointercancel", "lostpointercapture"]) element.addEventListener(kind, () => this.up(name));
    element.addEventListener("click", (event) => event.detail === 0 && !this.milliseconds && this.act(number));
    return { element, number };
  }

  same(other, number) {
    const at = this.actions.indexOf(other);
    return at > number && this.actions.slice(number + 1, at + 1).every((each) => !each.label);
  }

  down(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event)) return;
    const key = keyOf(event);
    if (key === "Escape" && this.running) return this.pause();
    if (!this.actions.some((action) => action.keys.includes(key))) return;
    if (event.target.closest?.("input[type=range]")) return;
    if (event.target.closest?.(".card") && (key === "Space" || key === "Enter")) return;
    event.preventDefault();
    if (this.milliseconds && this.active && !this.running) return this.start();
    this.press(key, this.find([...this.held.map((each) => each.name), key]), event.repeat);
  }

  find(names) {
    let best = null;
    this.actions.forEach((action, number) => {
      const fits = action.keys.length && action.keys.every((key) => names.includes(key));
      const newest = Math.max(...action.keys.map((key) => names.indexOf(key)));
      if (fits && (!best || action.keys.length > best.size || (action.keys.length === best.size && newest > best.newest))) {
        best = { number, size: action.keys.length, newest };
      }
    });
    return best?.number ?? null;
  }

  press(name, number, repeated = false) {
    if (!this.milliseconds) return number === null || this.act(number, repeated);
    if (this.active && !this.running) return this.start();
    this.held = [...this.held.filter((each) => each.name !== name), { name, number: name.startsWith("button") ? number : null }];
    this.tell();
  }

  up(name) {
    this.held = this.held.filter((each) => each.name !== name);
    if (this.milliseconds) this.tell();
  }

  release() {
    this.held = [];
    if (this.milliseconds) this.tell();
  }

  tell() {
    const last = this.held.at(-1);
    const number = last?.number ?? this.find(this.held.map((each) => each.name));
    for (const { element, number: own } of this.buttons) element.classList.toggle("held", own === number);
    if (!this.running || number === this.sent) return;
    this.sent = number;
    this.play.send({ do: "hold", act: number });
  }

  act(number) {
    if (!this.active) return;
    this.active = false; // until the next turn comes: a held key acts as fast as the world answers
    this.play.send({ do: "act", act: number });
  }

  start() {
    this.running = true;
    this.sent = null;
    this.play.stage.say();
    this.play.send({ do: "go" });
    this.tell();
  }

  pause() {
    if (!this.running) return;
    this.running = false;
    this.release();
    this.play.send({ do: "go" });
  }

  show(turn) {
    this.active = turn.ask === "act";
    for (const { element } of this.buttons) element.disabled = !this.active;
    if (!this.milliseconds || !this.active) {
      this.running = false;
      return;
    }
    this.running = false;
    this.play.stage.say(
      h("h2", {}, turn.first ? "Ready?" : "Paused"),
      h("p", {}, turn.first ? "Time runs once you begin. Esc pauses." : "Time runs again once you go on."),
      h("button", { type: "button", class: "primary", onclick: () => this.start() }, turn.first ? "Begin" : "Go on"),
    );
  }

  refused() {
    this.active = true;
  }

  close() {
    this.stop.abort();
  }
}
