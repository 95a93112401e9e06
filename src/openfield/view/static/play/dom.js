// Make elements. Text is always text: nothing that a server or a person says becomes markup.

/** Make an element: h("p", { class: "note", onclick: f }, "text", child). */
export function h(tag, options = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(options)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name in made && name !== "list" && typeof value !== "string") made[name] = value;
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return made;
}

/** Show text as paragraphs, cut at empty lines. */
export function paragraphs(text) {
  return text.trim().split(/\n\s*\n/).map((part) => h("p", {}, part.replace(/\s+/g, " ")));
}

const NAMES = { ArrowLeft: "←", ArrowRight: "→", ArrowUp: "↑", ArrowDown: "↓", Space: "space" };

/** Show what a key is called. */
export const keyName = (key) => NAMES[key] ?? key;

/** Name the key of an event as pages know it. */
export const keyOf = (event) => (event.key === " " ? "Space" : event.key.length === 1 ? event.key.toLowerCase() : event.key);

/** Return whether a person is typing into something. */
export const isTyping = (event) => Boolean(event.target.closest?.("input:not([type=range]), textarea, select"));
