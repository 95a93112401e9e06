// Keep a page up to date: when the server says that a run has changed, fetch the page again and put in what differs.
// Only texts and attributes that differ are touched, so nothing flickers, and what a reader opened stays open.
const WAIT_SHARE = 40; // a page is asked for again at most a fortieth of the time, so that a run is not slowed down
const WAIT_LEAST = 3000, WAIT_MOST = 10000; // milliseconds
const KEPT = new Set(["open", "data-kept"]);

/** Follow the events that the body names, if it names any. */
export function follow() {
  const address = document.body.dataset.live;
  if (!address) return;
  const stream = new EventSource(address);
  let busy = false, again = false;
  const update = async () => {
    if (busy) return void (again = true);
    busy = true;
    const began = performance.now();
    try {
      await refresh();
    } catch {
      say("The server does not answer.");
    }
    setTimeout(() => {
      busy = false;
      if (again) { again = false; update(); }
    }, document.querySelector(".pending") ? 0 : Math.min(Math.max(WAIT_LEAST, (performance.now() - began) * WAIT_SHARE), WAIT_MOST));
  };
  let opened = false;
  stream.addEventListener("open", () => {
    say("");
    if (opened || document.querySelector(".pending")) update(); // what came before the stream was open
    opened = true;
  });
  stream.addEventListener("change", update);
  stream.addEventListener("error", () => say("The server has stopped. Start it again: openfield view"));
}

/** Fetch this page and put in what differs. */
export async function refresh() {
  const answer = await fetch(location.href, { headers: { accept: "text/html" } });
  if (!answer.ok) throw new Error(answer.statusText);
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  morph(document.getElementById("main"), fresh.getElementById("main"));
  document.title = fresh.title;
  dispatchEvent(new CustomEvent("openfield:fresh", { detail: fresh }));
}

function say(text) {
  const place = document.getElementById("connection");
  place.textContent = text;
  place.hidden = !text;
}

/** Make one element equal to another, touching only what differs. Children with an id are matched by it. */
export function morph(old, fresh) {
  if (old.hasAttribute("data-own")) return; // a script draws it
  for (const { name, value } of [...fresh.attributes])
    if (!KEPT.has(name) && old.getAttribute(name) !== value) old.setAttribute(name, value);
  for (const { name } of [...old.attributes])
    if (!KEPT.has(name) && !fresh.hasAttribute(name)) old.removeAttribute(name);
  const byId = new Map([...old.children].filter((each) => each.id).map((each) => [each.id, each]));
  let place = old.firstChild;
  for (const wanted of [...fresh.childNodes]) {
    const match = wanted.id && byId.get(wanted.id);
    if (match && match !== place) old.insertBefore(match, place);
    const here = match || place;
    if (here && alike(here, wanted)) {
      if (here.nodeType === Node.TEXT_NODE) { if (here.data !== wanted.data) here.data = wanted.data; }
      else if (here.nodeType === Node.ELEMENT_NODE && !here.isEqualNode(wanted)) morph(here, wanted);
      place = here.nextSibling;
    } else {
      old.insertBefore(document.importNode(wanted, true), place);
    }
  }
  while (place) { const next = place.nextSibling; place.remove(); place = next; }
}

function alike(one, two) {
  return one.nodeType === two.nodeType && one.nodeName === two.nodeName && (one.id || "") === (two.id || "");
}
