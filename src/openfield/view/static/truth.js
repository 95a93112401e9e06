// Hides what is true before the page is drawn, if the reader wants to guess; `timeline.js` turns it on and off.
if (localStorage.getItem("openfield-truth") === "hidden") document.documentElement.dataset.truth = "hidden";
