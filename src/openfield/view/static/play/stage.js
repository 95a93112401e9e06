// The stage: one canvas that shows pictures as they come, at most as fast as a film wants, and a card over it.
import { h } from "./dom.js";

export class Stage {
  constructor() {
    this.canvas = h("canvas", { class: "picture", width: 4, height: 3 });
    this.overlay = h("canvas", { class: "overlay", width: 4, height: 3, "aria-hidden": "true" });
    this.card = h("div", { class: "card", hidden: true, tabindex: "-1" });
    this.frame = h("div", { class: "frame", hidden: true }, this.canvas, this.overlay);
    this.element = h("div", { class: "stage" }, this.frame, this.card);
    this.pictures = 0;
  }

  /** Draw a picture; small ones keep their pixels. */
  async draw(blob) {
    const bitmap = await createImageBitmap(blob);
    const { canvas, overlay } = this;
    if (canvas.width !== bitmap.width || canvas.height !== bitmap.height) {
      for (const each of [canvas, overlay]) [each.width, each.height] = [bitmap.width, bitmap.height];
      canvas.classList.toggle("pixels", bitmap.width < 400);
      this.frame.style.aspectRatio = `${bitmap.width} / ${bitmap.height}`;
      this.frame.style.setProperty("--shape", bitmap.width / bitmap.height);
    }
    this.frame.hidden = false;
    canvas.getContext("2d").drawImage(bitmap, 0, 0);
    bitmap.close();
    this.pictures += 1;
  }

  /** Show a card over the stage; without content it goes away. */
  say(...content) {
    this.card.replaceChildren(...content.filter(Boolean));
    this.card.hidden = content.length === 0;
    this.element.classList.toggle("covered", !this.card.hidden);
    // A scale is not focused by itself: a key that is still held from playing would move it.
    const target = this.card.querySelector("input") ? this.card : this.card.querySelector("button");
    target?.focus({ preventScroll: true });
  }
}
