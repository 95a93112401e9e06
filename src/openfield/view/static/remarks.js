// Change the tags and the note of a run: they are sent to the server, and the page is brought up to date.
import { keys } from "./keys.js";
import { refresh } from "./live.js";

const place = document.getElementById("remarks"), form = place?.querySelector("form");

async function keep() {
  const said = form.querySelector("[role=status]");
  const told = { tags: form.elements.tags.value.split(/[\s,]+/).filter(Boolean), note: form.elements.note.value.trim() };
  const answer = await fetch(form.dataset.address, { method: "PUT", body: JSON.stringify(told) }).catch(() => null);
  const found = answer ? await answer.json().catch(() => ({ error: "Refused." })) : { error: "The server does not answer." };
  if (found.error) return void (said.textContent = found.error);
  said.textContent = "Kept.";
  await refresh();
}

if (form) {
  form.addEventListener("submit", (event) => { event.preventDefault(); keep(); });
  keys({ e: ["change tags and note", () => { place.open = true; form.elements.tags.focus(); }] });
}
