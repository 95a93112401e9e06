// What is shown of a turn beside its picture. Every panel is made once and then only gets the next turn.
import { Shown } from "./tree.js";

function make(kind, name, ...children) {
  const made = document.createElement(kind);
  if (name) made.className = name;
  made.append(...children);
  return made;
}
const put = (element, text) => { if (element.textContent !== text) element.textContent = text; };

class Panel {
  constructor(title, kind = "") {
    this.title = make("h3", "", title);
    this.aside = make("span", "aside");
    this.body = make("div", "body");
    this.element = make("section", `panel ${kind}`, make("header", "", this.title, this.aside), this.body);
  }
  show(visible) {
    this.element.hidden = !visible;
    return visible;
  }
}

const ASKS = { act: "asks for an action", belief: "asks for a belief", ready: "asks whether to go on", none: "asks nothing" };

class Saw extends Panel {
  constructor() {
    super("Saw", "saw");
    this.light = make("p", "light");
    this.value = new Shown();
    this.told = make("p", "feedback-label soft", "Feedback on the reply before");
    this.feedback = new Shown();
    this.body.append(this.light, this.value.element, this.told, this.feedback.element);
  }
  set(turn) {
    const notes = [turn.phase, ASKS[turn.ask] ?? turn.ask];
    if (turn.first) notes.push("an episode starts");
    if (turn.last) notes.push(`the episode ended (${turn.last})`);
    if (turn.again) notes.push("shown again");
    put(this.aside, [...notes, ...sayCode(turn.observation)].join(" · "));
    this.light.hidden = turn.red_light === null;
    const told = typeof turn.red_light === "number" ? `the strength of the change, ${turn.red_light}` : "that the world has changed";
    put(this.light, turn.red_light ? `Red light: the agent is told ${told}.` : "Red light: off.");
    this.value.set(sayLetter(turn.observation));
    this.told.hidden = this.feedback.element.hidden = turn.feedback === null;
    if (turn.feedback !== null) this.feedback.set(turn.feedback);
  }
}

const TAPE = 72; // symbols that are shown of a stream
const { letters } = JSON.parse(document.getElementById("data").textContent).sides[0].head; // numbers of other domains are no letters
const isSymbol = (value) => letters && Number.isInteger(value) && value >= 0 && value < 256;
const isPrinted = (value) => isSymbol(value) && value >= 32 && value < 127;
const sayAll = (values) => values.map((each) => (isPrinted(each) ? String.fromCharCode(each) : "·")).join("");
/** A value as it is shown: a letter instead of its code, and a mark for a space, which could not be seen. */
const sayLetter = (value) => (!isPrinted(value) ? value : value === 32 ? "␣" : String.fromCharCode(value));
const sayCode = (value) => (isPrinted(value) ? [`code ${value}`] : []);

/** The last symbols of both, one above the other, where a turn is a single letter. */
class Symbols extends Panel {
  constructor() {
    super("So far, symbol by symbol", "saw");
    this.rows = ["world", "agent"].map((name) => {
      const text = make("span", "tape"), now = make("mark", "tape now");
      this.body.append(make("p", "stream", make("span", "part-name", name), text, now));
      return [text, now];
    });
  }
  set(turn, recent) {
    if (!this.show(isSymbol(turn.observation) && recent.length > 0)) return;
    const seen = recent.map((each) => (isSymbol(each.observation) ? each.observation : 0));
    const said = recent.map((each) => (isSymbol(each.reply?.action) ? each.reply.action : 0));
    [seen, said].forEach((values, which) => {
      put(this.rows[which][0], sayAll(values.slice(0, -1)));
      put(this.rows[which][1], sayAll(values.slice(-1)));
    });
  }
}

class Answered extends Panel {
  constructor() {
    super("Answered", "answered");
    this.value = new Shown();
    this.value.element.classList.add("action");
    this.body.append(this.value.element);
  }
  set(turn) {
    const reply = turn.reply;
    put(this.aside, reply ? [`took ${sayTime(reply.milliseconds)}`, ...sayCode(reply.action)].join(" · ") : "");
    this.value.set(reply ? sayLetter(reply.action) ?? "no action" : "no reply yet");
  }
}

class Believed extends Panel {
  constructor() {
    super("Believed", "believed");
    this.figure = make("b", "big");
    this.bar = make("span", "fill");
    this.meter = make("span", "meter-bar", this.bar);
    this.words = make("span", "soft");
    this.more = new Shown();
    this.body.append(make("p", "chance", this.figure, this.meter, this.words), this.more.element);
  }
  set(turn) {
    const reply = turn.reply;
    const said = reply !== null && reply.belief !== null && reply.belief !== undefined;
    this.meter.hidden = !said;
    put(this.figure, said ? reply.belief.toFixed(2) : "–");
    this.bar.style.width = `${said ? Math.min(Math.max(reply.belief, 0), 1) * 100 : 0}%`;
    put(this.words, said ? `that the world has changed${reply.level == null ? "" : `, level ${reply.level}`}` : "nothing said");
    const more = said ? { ...(reply.beliefs ? { samples: reply.beliefs } : {}), ...(reply.detail == null ? {} : { detail: reply.detail }) } : {};
    this.more.element.hidden = !Object.keys(more).length;
    if (!this.more.element.hidden) this.more.set(more);
  }
}

class Earned extends Panel {
  constructor() {
    super("Earned", "earned");
    this.figure = make("b", "big");
    this.body.append(make("p", "", this.figure));
  }
  set(turn) {
    put(this.figure, turn.earned === null ? "–" : `${turn.earned > 0 ? "+" : ""}${Number(turn.earned.toPrecision(6))}`.replace("-", "−"));
  }
}

class Truth extends Panel {
  constructor() {
    super("True", "truth");
    this.words = make("p", "");
    this.value = new Shown();
    this.body.append(this.words, this.value.element);
  }
  set(turn) {
    const truth = turn.truth;
    if (!this.show(truth !== null)) return;
    const parts = [truth.novel ? "The world is changed" : "The world is normal"];
    if (truth.change) parts.push(`by ${truth.strength.toFixed(2)} of ${truth.change}`);
    if (truth.performance !== null) parts.push(`performance so far ${truth.performance.toFixed(2)}`);
    if (truth.episode_over) parts.push("the episode ends here");
    put(this.words, `${parts.join(", ")}.`);
    this.value.element.hidden = truth.detail === null;
    if (truth.detail !== null) this.value.set(truth.detail);
  }
}

const isTalk = (value) => Array.isArray(value) && value.length > 0 && value.every((each) => each && typeof each === "object" && "content" in each);
const COUNTED = ["tokens_in", "tokens_out", "calls", "seconds", "cost", "estimated"];

/** What a language model was asked and said, if a note is a transcript; anything else as it is. */
class Noted extends Panel {
  constructor() {
    super("Noted", "noted");
    this.talk = make("ol", "talk");
    this.rest = new Shown();
    this.body.append(this.talk, this.rest.element);
  }
  set(turn) {
    const note = turn.reply?.note ?? null;
    if (!this.show(note !== null) || note === this.note) return;
    this.note = note;
    const parts = typeof note === "object" && !Array.isArray(note) ? { ...note } : null;
    const name = isTalk(note) ? "" : ["transcript", "messages"].find((each) => isTalk(parts?.[each]));
    const talk = name === undefined ? [] : name ? parts[name] : note;
    this.talk.hidden = !talk.length;
    this.talk.replaceChildren(...talk.map(sayMessage));
    put(this.aside, parts ? sayTokens(parts) : "");
    if (parts) for (const each of [name, ...(talk.length ? COUNTED : [])]) delete parts[each];
    const rest = parts ?? (talk.length ? {} : note);
    this.rest.element.hidden = rest !== null && typeof rest === "object" && !Object.keys(rest).length;
    if (!this.rest.element.hidden) this.rest.set(rest);
  }
}

function sayMessage(message) {
  const content = typeof message.content === "string" ? message.content : JSON.stringify(message.content, null, 1);
  const role = String(message.role ?? ""), said = make("div", "", content);
  const thought = typeof message.thinking === "string" ? [fold("thinking", make("div", "soft", message.thinking))] : [];
  const body = role === "system" ? fold("system", said) : said;
  return make("li", `message ${role === "assistant" ? "own" : ""}`, ...(role === "system" ? [] : [make("span", "role", role)]), ...thought, body);
}

function fold(title, inside) {
  return make("details", "", make("summary", "role", title), inside);
}

function sayTokens(note) {
  const about = note.estimated ? "about " : "", parts = [];
  if (typeof note.tokens_in === "number") parts.push(`${about}${note.tokens_in.toLocaleString("en")} tokens in`);
  if (typeof note.tokens_out === "number") parts.push(`${about}${note.tokens_out.toLocaleString("en")} out`);
  if (typeof note.seconds === "number" && parts.length) parts.push(`${note.seconds.toFixed(1)} s`);
  if (note.calls > 1) parts.push(`${note.calls} calls`);
  if (typeof note.cost === "number") parts.push(`cost ${Number(note.cost.toPrecision(3))}`);
  return parts.join(" · ");
}

function sayTime(milliseconds) {
  if (milliseconds < 1) return `${(milliseconds * 1000).toFixed(0)} µs`;
  return milliseconds < 1000 ? `${milliseconds.toPrecision(3)} ms` : `${(milliseconds / 1000).toFixed(2)} s`;
}

/** All panels of an agent. */
export class Panels {
  constructor(seen, rest) {
    const saw = new Saw(), others = [new Answered(), new Believed(), new Earned(), new Noted(), new Truth()];
    const symbols = new Symbols();
    seen.append(symbols.element, saw.element);
    rest.append(...others.map((each) => each.element));
    this.all = [symbols, saw, ...others];
  }
  /** Show a turn; `before(number)` returns an earlier one if it is at hand. */
  set(turn, before) {
    const recent = [];
    if (isSymbol(turn.observation))
      for (let number = turn.number - TAPE + 1; number <= turn.number; number += 1) {
        const each = number === turn.number ? turn : before(number);
        if (each) recent.push(each);
        else recent.length = 0;
      }
    for (const each of this.all) each.set(turn, recent);
  }
}
