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

const go = (text) => () => [...document.querySelectorAll(".pager a")].find((each) => each.textContent === text)?.click();
keys({
  j: ["next turn", () => step(1)],
  k: ["turn before", () => step(-1)],
  r: ["show or hide what is true", turnTruth],
  n: ["later turns", go("Later turns")],
  p: ["earlier turns", go("Earlier turns")],
});
document.querySelector(".truth-button").addEventListener("click", turnTruth);
showTruth();
