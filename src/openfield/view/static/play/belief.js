// Ask how likely it is that the world has changed: a scale without a default, so that nothing is suggested.
import { h } from "./dom.js";

/** Make the question. `say` gets a number from 0 to 1; `go` is what the button says. */
export function beliefForm(question, say, go = "Say it") {
  const value = h("output", { class: "chosen", "aria-live": "polite" }, "–");
  const button = h("button", { type: "submit", class: "primary", disabled: true }, go);
  const scale = h("input", {
    type: "range", min: "0", max: "1", step: "0.01", value: "0.5", class: "scale unset", "aria-label": question,
  });
  const choose = () => {
    scale.classList.remove("unset");
    value.textContent = Number(scale.value).toFixed(2);
    button.disabled = false;
  };
  for (const name of ["input", "pointerdown", "keydown"]) {
    scale.addEventListener(name, (event) => {
      if (name !== "keydown" || event.key.startsWith("Arrow") || /^(Home|End|Page)/.test(event.key)) requestAnimationFrame(choose);
    });
  }
  return h("form", {
    class: "belief",
    onsubmit: (event) => {
      event.preventDefault();
      if (button.disabled) return;
      button.disabled = true;
      say(Number(scale.value));
    },
  },
  h("p", { class: "question" }, question),
  h("div", { class: "row" }, h("span", { class: "end" }, "0"), scale, h("span", { class: "end" }, "1"), value),
  button);
}
