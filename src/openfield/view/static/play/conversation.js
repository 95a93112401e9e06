// Play as a conversation: what the teacher says, what you say, and the rewards between them.
import { h } from "./dom.js";

export class Conversation {
  constructor(play, { skips, parts }) {
    this.play = play;
    this.list = h("div", { class: "talk", role: "log", "aria-live": "polite", tabindex: "0", "aria-label": "The conversation" });
    this.note = h("p", { class: "hint", role: "status" });
    this.map = h("pre", { class: "map", hidden: true });
    this.line = h("input", {
      type: "text", class: "line", autocomplete: "off", maxlength: "1000", "aria-label": "What you say", placeholder: "Say something, or nothing",
    });
    this.button = h("button", { type: "submit", class: "primary" }, "Say");
    const skip = h("button", { type: "button", onclick: () => this.say("SKIP") }, "Skip this exercise");
    this.form = h("form", { class: "say", onsubmit: (event) => { event.preventDefault(); this.say(this.line.value); } },
      this.line, this.button, skips ? skip : null);
    this.element = h("div", { class: "conversation" }, this.map, this.list, this.note, this.form);
    for (const part of parts) this.add(part);
  }

  /** Add a part: all that you said, and then what the teacher said meanwhile, cut where rewards came. */
  add(steps) {
    const said = steps.map((step) => step[0]).join("").trim();
    if (said) this.bubble("you", said);
    let text = "";
    for (const [, heard, reward] of steps) {
      if (reward) {
        this.bubble("teacher", text.trim());
        this.bubble(reward > 0 ? "reward won" : "reward lost", reward > 0 ? `+${reward}` : `−${-reward}`);
        text = "";
      }
      text += heard;
    }
    this.bubble("teacher", text.trim());
    while (this.list.children.length > 400) this.list.firstChild.remove();
    this.list.scrollTop = this.list.scrollHeight;
  }

  bubble(who, text) {
    if (text) this.list.append(h("p", { class: `bubble ${who}` }, text));
  }

  say(text) {
    if (!this.active) return;
    this.active = false;
    this.line.value = "";
    this.play.send({ do: "act", act: text });
  }

  show(turn) {
    this.add(turn.steps);
    this.active = turn.ask === "act";
    this.note.textContent = turn.note ?? "";
    this.map.textContent = turn.map ?? "";
    this.map.hidden = !turn.map;
    this.line.disabled = this.button.disabled = !this.active;
    if (this.active) this.line.focus({ preventScroll: true });
  }

  refused() {
    this.active = true;
  }

  close() {}
}
