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

/** Show only the turns in which all words are found, long texts included, and list those of the rest of the trial. */
function search() {
  const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const entry of entries) entry.hidden = !words.every((word) => entry.textContent.toLowerCase().includes(word));
  const shown = entries.filter((entry) => !entry.hidden).length;
  found.textContent = words.length ? `${shown} of ${entries.length} turns here` : "";
  clearTimeout(waiting);
  asked += 1;
  elsewhere.hidden = !words.length || entries.length >= Number(elsewhere.dataset.count);
  if (!elsewhere.hidden) waiting = setTimeout(() => searchElsewhere(words.join(" "), asked), 250);
}

const elsewhere = document.getElementById("elsewhere"), list = elsewhere.querySelector("ol");
const MOST = 200; // turns that are listed
let waiting = 0, asked = 0;

/** List the turns of the other pages in which all words are; the server searches part by part. */
async function searchElsewhere(text, mine) {
  const said = elsewhere.querySelector("[role=status]"), first = Number(elsewhere.dataset.first), last = Number(elsewhere.dataset.last);
  list.replaceChildren();
  said.textContent = "Searching …";
  for (let from = 0, count = 0; from !== null;) {
    const answer = await fetch(`${elsewhere.dataset.search}?${new URLSearchParams({ text, from })}`).then((each) => each.json()).catch(() => ({ error: "The server does not answer." }));
    if (mine !== asked) return;
    if (answer.error) return void (said.textContent = answer.error);
    const others = answer.found.filter((each) => each.number < first || each.number > last);
    list.append(...others.slice(0, MOST - count).map(item));
    count += others.length;
    from = answer.next;
    const turns = count === 1 ? "1 turn" : `${count} turns`;
    if (count >= MOST) return void (said.textContent = `The first ${MOST} turns.`);
    said.textContent = from === null ? (count ? `${turns}.` : "No other turn has these words.") : `${turns}; searched as far as turn ${from} of ${answer.turns} …`;
  }
}

function item(turn) {
  const line = document.createElement("li"), link = document.createElement("a");
  link.href = `${location.pathname}?from=${Math.max(turn.number - 3, 0)}#turn-${turn.number}`;
  link.textContent = `turn ${turn.number}`;
  line.append(link, ` of episode ${turn.episode}: ${turn.excerpt}`);
  return line;
}

/** Return a turn as Markdown: its roles in bold, and what was said as it is. */
function write(entry) {
  const parts = [...entry.querySelectorAll("dt")].map((term) => {
    const texts = [...term.nextElementSibling.querySelectorAll("pre")].filter((each) => !each.closest(".prose")).map((each) => each.textContent);
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

const written = document.getElementById("written");
/** Show what the agent said as it wrote it, or laid out. */
function turnWritten() {
  const raw = document.documentElement.toggleAttribute("data-written");
  written.setAttribute("aria-pressed", String(raw));
}

find.addEventListener("input", search);
written?.addEventListener("click", turnWritten);
document.getElementById("copy").addEventListener("click", copy);

const go = (text) => () => [...document.querySelectorAll(".pager a")].find((each) => each.textContent === text)?.click();
keys({
  j: ["next turn", () => step(1)],
  k: ["turn before", () => step(-1)],
  "/": ["search the trial", () => find.focus()],
  ...(written ? { m: ["what the agent said as it wrote it, or laid out", turnWritten] } : {}),
  c: ["copy the turns that are shown", copy],
  r: ["show or hide what is true", turnTruth],
  n: ["later turns", go("Later turns")],
  p: ["earlier turns", go("Earlier turns")],
});
document.querySelector(".truth-button").addEventListener("click", turnTruth);
showTruth();
