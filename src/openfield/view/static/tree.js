// Structured data that folds. A tree is kept when its value changes: what a reader opened stays open, nothing flickers.
const CUT = "…";
const INLINE = 12; // short lists of plain values stand in one line
const OPEN = 16; // a value with at most this many parts is open at first

const isBranch = (value) => value !== null && typeof value === "object" && !isInline(value);
const isPlain = (value) => value === null || typeof value !== "object";
const isInline = (value) => Array.isArray(value) && value.length <= INLINE && value.every(isPlain) &&
  value.every((each) => typeof each !== "string" || each.length < 20);

function say(value) {
  if (typeof value === "string") return value;
  if (typeof value === "number") return Number.isInteger(value) ? String(value) : String(Number(value.toPrecision(6)));
  if (Array.isArray(value)) return `[${value.map(say).join(", ")}]`;
  return JSON.stringify(value);
}

function summary(value) {
  if (Array.isArray(value)) return `${value.length} ${value.length === 1 ? "value" : "values"}`;
  const names = Object.keys(value);
  return names.length > 5 ? `${names.slice(0, 5).join(", ")}, ${CUT}` : names.join(", ") || "nothing";
}

class Leaf {
  constructor(name) {
    this.element = document.createElement("div");
    this.element.className = "leaf";
    this.text = document.createElement("span");
    if (name !== null) this.element.append(label(name));
    this.element.append(this.text);
  }
  set(value) {
    const kind = value === null ? "none" : typeof value;
    const text = say(value);
    if (this.text.className !== `v ${kind}`) this.text.className = `v ${kind}`;
    if (this.text.textContent !== text) this.text.textContent = text;
  }
}

class Branch {
  constructor(name, depth) {
    this.element = document.createElement("details");
    this.depth = depth;
    this.parts = new Map();
    const head = document.createElement("summary");
    this.short = document.createElement("span");
    this.short.className = "short";
    if (name !== null) head.append(label(name));
    head.append(this.short);
    this.inside = document.createElement("div");
    this.inside.className = "inside";
    this.element.append(head, this.inside);
    this.element.addEventListener("toggle", () => this.fill());
  }
  set(value) {
    if (this.value === undefined)
      this.element.open = this.depth === 0 || (this.depth === 1 && Object.keys(value).length <= OPEN && !Array.isArray(value));
    this.value = value;
    const text = summary(value);
    if (this.short.textContent !== text) this.short.textContent = text;
    this.fill();
  }
  fill() {
    if (!this.element.open) return;
    const names = Object.keys(this.value);
    const wanted = new Set(names);
    for (const [name, part] of this.parts)
      if (!wanted.has(name)) { part.element.remove(); this.parts.delete(name); }
    let before = null;
    for (const name of names) {
      const value = this.value[name];
      let part = this.parts.get(name);
      if (!part || part instanceof Branch !== isBranch(value)) {
        part?.element.remove();
        part = isBranch(value) ? new Branch(name, this.depth + 1) : new Leaf(name);
        this.parts.set(name, part);
        before ? before.after(part.element) : this.inside.prepend(part.element);
      }
      part.set(value);
      before = part.element;
    }
  }
}

function label(name) {
  const made = document.createElement("span");
  made.className = "part-name";
  made.textContent = name;
  return made;
}

/** A place that shows any value: a text as it is, numbers in a line, the rest as a tree. */
export class Shown {
  constructor() {
    this.element = document.createElement("div");
    this.element.className = "shown";
  }
  set(value) {
    const kind = isBranch(value) ? "tree" : typeof value === "string" && value.length > 24 ? "text" : "leaf";
    if (kind !== this.kind) {
      this.kind = kind;
      this.part = kind === "tree" ? new Branch(null, 0) : kind === "text" ? new Text() : new Leaf(null);
      this.element.replaceChildren(this.part.element);
    }
    this.part.set(value);
  }
}

class Text {
  constructor() {
    this.element = document.createElement("pre");
    this.element.tabIndex = 0;
  }
  set(value) {
    if (this.element.textContent !== value) this.element.textContent = value;
  }
}
