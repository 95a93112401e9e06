// Figures that the report draws: their styles are put in here, because a page of the viewer may hold none.
function dress() {
  for (const each of document.querySelectorAll("[data-style]")) each.style.cssText = each.dataset.style;
}
addEventListener("openfield:fresh", dress);
dress();
