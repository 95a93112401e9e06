// Play with a sling: pull back anywhere on the picture, let go, and click while the bird flies to use its power, if any.
import { h, keyOf } from "./dom.js";

const REACH = 96; // CSS pixels of a full pull, at least

export class Sling {
  constructor(play) {
    Object.assign(this, { play, sling: null, state: "off", aim: { angle: 0.5, power: 0.8 }, frames: 0, start: null });
    this.hint = h("p", { class: "hint", role: "status" });
    this.shoot = h("button", { type: "button", class: "primary", onclick: () => this.launch() }, "Shoot");
    this.skip = h("button", { type: "button", onclick: () => this.land() }, "Skip");
    this.element = h("div", { class: "pad sling" }, this.hint, this.shoot, this.skip);
    this.stop = new AbortController();
    const { overlay } = play.stage;
    const { signal } = this.stop;
    overlay.classList.add("touch");
    overlay.addEventListener("pointerdown", (event) => this.grab(event), { signal });
    overlay.addEventListener("pointermove", (event) => this.pull(event), { signal });
    overlay.addEventListener("pointerup", (event) => this.letGo(event), { signal });
    overlay.addEventListener("pointercancel", () => this.forget(), { signal });
    addEventListener("keydown", (event) => this.key(event), { signal });
    this.update();
  }

  get scale() {
    const { canvas } = this.play.stage;
    return canvas.width / Math.max(canvas.getBoundingClientRect().width, 1);
  }

  grab(event) {
    event.preventDefault();
    if (this.state === "fly") return this.tap();
    if (this.state !== "aim") return;
    this.play.stage.overlay.setPointerCapture(event.pointerId);
    this.start = [event.clientX, event.clientY];
  }

  pull(event) {
    if (!this.start) return;
    const [dx, dy] = [this.start[0] - event.clientX, event.clientY - this.start[1]];
    const reach = Math.max(REACH, (2.5 * this.sling.pull) / this.scale);
    const power = Math.min(Math.hypot(dx, dy) / reach, 1);
    if (power > 0.02) this.aim = { angle: Math.atan2(dy, dx), power };
    this.paint();
  }

  letGo(event) {
    if (!this.start) return;
    this.pull(event);
    const far = Math.hypot(event.clientX - this.start[0], event.clientY - this.start[1]) > 12;
    this.start = null;
    if (far) this.launch();
    else this.paint();
  }

  forget() {
    this.start = null;
    this.paint();
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.(".card, .belief, button")) return;
    const steps = { ArrowUp: [0.0175, 0], ArrowDown: [-0.0175, 0], ArrowRight: [0, 0.02], ArrowLeft: [0, -0.02] };
    const key = keyOf(event);
    if (this.state === "fly" && key === "Space") {
      event.preventDefault();
      return this.tap();
    }
    if (this.state !== "aim") return;
    if (steps[key]) {
      event.preventDefault();
      const power = Math.min(1, Math.max(0.02, this.aim.power + steps[key][1]));
      this.aim = { angle: this.aim.angle + steps[key][0] * (event.shiftKey ? 5 : 1), power };
      this.paint();
    } else if (key === "Enter" || key === "Space") {
      event.preventDefault();
      this.launch();
    }
  }

  launch() {
    if (this.state !== "aim") return;
    const { angle, power } = this.aim;
    this.state = "fly";
    this.frames = 0;
    this.update();
    this.play.watch(() => { this.frames += 1; });
    this.play.send({ do: "preview", act: { dx: power * Math.cos(angle), dy: power * Math.sin(angle) } });
  }

  tap() {
    if (this.state !== "fly" || !this.frames || !this.sling?.power) return;
    this.finish({ tap: this.frames }, this.frames);
  }

  land() {
    if (this.state === "fly") this.finish({}, 100000);
    else if (this.state === "watch") this.play.skipFilm();
  }

  landed() {
    if (this.state === "fly") this.finish({}, 100000);
  }

  finish(act, seen) {
    this.state = "watch";
    this.update();
    this.play.dropFilm();
    this.play.send({ do: "act", act, seen });
  }

  show(turn) {
    this.sling = turn.sling ?? null;
    this.state = turn.ask === "act" && this.sling ? "aim" : "off";
    this.update();
  }

  update() {
    const hints = {
      aim: "Pull back anywhere on the picture and let go. Keys: arrows aim, Enter shoots.",
      fly: this.sling?.power ? "Click the picture, or press space, to use the bird's power." : "This bird has no power.",
      watch: "", off: "",
    };
    this.hint.textContent = hints[this.state];
    this.shoot.hidden = this.state !== "aim";
    this.skip.hidden = this.state !== "fly" && this.state !== "watch";
    this.paint();
  }

  paint() {
    const { overlay } = this.play.stage;
    const pen = overlay.getContext("2d");
    pen.clearRect(0, 0, overlay.width, overlay.height);
    if (this.state !== "aim") return;
    const { x, y, pull } = this.sling;
    const { angle, power } = this.aim;
    const [dx, dy] = [Math.cos(angle) * power, -Math.sin(angle) * power];
    const unit = Math.max(pull, 34);
    pen.lineCap = "round";
    pen.strokeStyle = "rgba(255,255,255,.9)";
    pen.lineWidth = 5;
    this.line(pen, x, y, x + dx * unit * 3, y + dy * unit * 3, [1, 12]);
    pen.strokeStyle = "rgba(40,24,16,.85)";
    pen.lineWidth = 4;
    this.line(pen, x, y, x - dx * unit, y - dy * unit, []);
    pen.fillStyle = this.start ? "#d9402c" : "rgba(217,64,44,.75)";
    pen.beginPath();
    pen.arc(x - dx * unit, y - dy * unit, 9, 0, 7);
    pen.fill();
    pen.stroke();
    pen.font = "600 15px system-ui, sans-serif";
    pen.fillStyle = "#2a1a10";
    const text = `${Math.round((angle * 180) / Math.PI)}°  ${Math.round(power * 100)} %`;
    pen.fillText(text, Math.min(Math.max(x - 30, 8), overlay.width - 90), Math.max(y - 46, 20));
  }

  line(pen, x1, y1, x2, y2, dashes) {
    pen.setLineDash(dashes);
    pen.beginPath();
    pen.moveTo(x1, y1);
    pen.lineTo(x2, y2);
    pen.stroke();
    pen.setLineDash([]);
  }

  close() {
    this.stop.abort();
    this.play.stage.overlay.classList.remove("touch");
  }
}
