// The transcript: keys walk from turn to turn, and the truth can be hidden.
import { keys } from "./keys.js";
import { turnTruth, showTruth } from "./timeline.js";

function step(by) {
  const links = [...document.querySelectorAll(".entry h3 a")];
  const at = links.indexOf(document.activeElement?.closest(".entry")?.querySelector("h3 a"));
  const wanted = links[Math.min(links.length - 1, Math.max(0, at + by))];
  wanted?.focus({ preventScroll: true });
  wanted?.scrollIntoView({ block: "center" });
}

const find = document.getElementById("find");
const found = document.getElementById("found");
const entries = [...document.querySelectorAll(".entry")];

/** Show only the turns in which all words are found, long texts included. */
function search() {
  const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const entry of entries) entry.hidden = !words.every((word) => entry.textContent.toLowerCase().includes(word));
  const shown = entries.filter((entry) => !entry.hidden).length;
  found.textContent = words.length ? `${shown} of ${entries.length} turns` : "";
}

/** Return a turn as Markdown: its roles in bold, and what was said as it is. */
function write(entry) {
  const parts = [...entry.querySelectorAll("dt")].map((term) => {
    const texts = [...term.nextElementSibling.querySelectorAll("pre")].map((each) => each.textContent);
    return `**${term.textContent}**\n\n${(texts.length ? texts : [term.nextElementSibling.textContent]).join("\n\n")}`;
  });
  return `### ${entry.querySelector("h3 a").textContent}\n\n${parts.join("\n\n")}`;
}

async function copy() {
  const text = entries.filter((entry) => !entry.hidden).map(write).join("\n\n");
  try {
    await navigator.clipboard.writeText(text);
    found.textContent = "Copied";
  } catch { // an address that browsers do not call secure has no clipboard
    found.textContent = "This browser lets no page copy here. Select the text instead.";
  }
}

find.addEventListener("input", search);
document.getElementById("copy").addEventListener("click", copy);

const go = (text) => () => [...document.querySelectorAll(".pager a")].find((each) => each.textContent === text)?.click();
keys({
  j: ["next turn", () => step(1)],
  k: ["turn before", () => step(-1)],
  "/": ["search these turns", () => find.focus()],
  c: ["copy the turns that are shown", copy],
  r: ["show or hide what is true", turnTruth],
  n: ["later turns", go("Later turns")],
  p: ["earlier turns", go("Earlier turns")],
});
document.querySelector(".truth-button").addEventListener("click", turnTruth);
showTruth();
