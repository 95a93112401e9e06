// Save the page as it is seen now: one file that needs neither the server nor a network.
import { keys } from "./keys.js";

const POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:";

const WORKS_HERE_ONLY = "script, link, noscript, dialog, .tools, .skip, button, a.button, form.search, .speed, .beside, .layout-switch, [data-live-only]";

/** Write a copy of the page with its styles and pictures in it, and without scripts, links and what needs them. */
async function save() {
  const sheets = [...document.querySelectorAll('link[rel="stylesheet"]')];
  const styles = await Promise.all(sheets.map((sheet) => fetch(sheet.href).then((answer) => answer.text())));
  const copy = document.documentElement.cloneNode(true);
  takePictures(copy);
  keepState(copy);
  keepWidths(copy);
  for (const each of copy.querySelectorAll(WORKS_HERE_ONLY)) each.remove();
  for (const link of copy.querySelectorAll("a[href]")) if (!link.getAttribute("href").startsWith("#")) link.removeAttribute("href");
  copy.querySelector("body").removeAttribute("data-live");
  const policy = document.createElement("meta");
  policy.httpEquiv = "Content-Security-Policy";
  policy.content = POLICY;
  const style = document.createElement("style");
  style.textContent = styles.join("\n");
  copy.querySelector("head").append(policy, style);
  offer(new Blob(["<!doctype html>\n", copy.outerHTML], { type: "text/html" }));
}

/** Let fields and sliders, which say what is shown, stand as they are now, and be still: a copy has them as they began. */
function keepState(copy) {
  const fields = "input, select";
  const now = [...document.querySelectorAll(fields)];
  [...copy.querySelectorAll(fields)].forEach((field, index) => {
    const seen = now[index];
    field.disabled = true;
    field.toggleAttribute("checked", Boolean(seen.checked));
    if (seen.matches("input")) field.setAttribute("value", seen.value);
    [...(field.options ?? [])].forEach((option, at) => option.toggleAttribute("selected", at === seen.selectedIndex));
  });
}

/** Let a slider be as wide as the trace above it was drawn: without buttons beside it there is more room. */
function keepWidths(copy) {
  const now = document.querySelectorAll(".scrub");
  copy.querySelectorAll(".scrub").forEach((each, index) => { each.style.width = `${now[index].offsetWidth}px`; });
}

/** Put pictures in the place of what scripts drew: a copy of a canvas is empty. */
function takePictures(copy) {
  const drawn = [...document.querySelectorAll("canvas")];
  [...copy.querySelectorAll("canvas")].forEach((canvas, index) => {
    const picture = document.createElement("img");
    for (const { name, value } of [...canvas.attributes]) picture.setAttribute(name, value);
    picture.alt = canvas.getAttribute("aria-label") ?? "";
    picture.src = drawn[index].toDataURL();
    canvas.replaceWith(picture);
  });
}

function offer(file) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(file);
  link.download = `${document.title.replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "")}.html`;
  link.click();
  URL.revokeObjectURL(link.href);
}

document.getElementById("save").addEventListener("click", save);
keys({ s: ["save this page as one file", save] });
