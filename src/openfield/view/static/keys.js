// Keys of a page, and the dialog that lists them. A page adds its own: keys({ n: ["next turn", step] }).
const known = new Map();

/** Add keys: an object of key -> [what it does, function]. Keys are those of KeyboardEvent.key. */
export function keys(added) {
  for (const [key, what] of Object.entries(added)) known.set(key, what);
}

/** Show which keys there are. */
export function showKeys() {
  let dialog = document.getElementById("keys");
  if (dialog?.open) return dialog.close();
  dialog?.remove();
  dialog = document.createElement("dialog");
  dialog.id = "keys";
  dialog.setAttribute("aria-labelledby", "keys-title");
  const title = document.createElement("h2");
  title.id = "keys-title";
  title.textContent = "Keys";
  const list = document.createElement("dl");
  for (const [key, [what]] of known) {
    const term = document.createElement("dt");
    const name = document.createElement("kbd");
    name.textContent = NAMES[key] ?? key;
    term.append(name);
    const meaning = document.createElement("dd");
    meaning.textContent = what;
    list.append(term, meaning);
  }
  const close = document.createElement("button");
  close.type = "button";
  close.textContent = "Close";
  close.addEventListener("click", () => dialog.close());
  dialog.append(title, list, close);
  document.body.append(dialog);
  dialog.showModal();
}

const NAMES = { ArrowLeft: "←", ArrowRight: "→", ArrowUp: "↑", ArrowDown: "↓", " ": "space", Escape: "Esc" };

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  const typing = event.target.closest?.("input:not([type=range], [type=checkbox]), textarea, select, [contenteditable]");
  if (typing && event.key !== "Escape") return;
  const found = known.get(event.key);
  if (!found || (event.key === " " && event.target.closest?.("button, a, summary, [type=checkbox]"))) return;
  if (document.getElementById("keys")?.open && event.key !== "?") return;
  event.preventDefault();
  found[1](event);
});
