// The pictures of an episode: read from the server while they are made, and drawn on a canvas.
const END = 0xffffffff;

export class FrameStream {
  /** Begin to read; `changed()` is called when there is something new. */
  constructor(address, changed) {
    this.milliseconds = null;
    this.frames = []; // { turn, data }
    this.over = false;
    this.message = "";
    this.starts = new Map(); // turn -> the index of its first picture, and how many it has
    this.stop = new AbortController();
    this.read(address, changed).catch((error) => {
      if (error.name !== "AbortError") this.message = "The pictures could not be read.";
      this.over = true;
      changed();
    });
  }
  async read(address, changed) {
    const answer = await fetch(address, { signal: this.stop.signal });
    if (!answer.ok) {
      this.message = (await answer.json().catch(() => ({}))).error ?? "There are no pictures.";
      this.over = true;
      return changed();
    }
    const reader = answer.body.getReader();
    let rest = new Uint8Array(0);
    for (;;) {
      const { value, done } = await reader.read();
      if (done) break;
      const data = new Uint8Array(rest.length + value.length);
      data.set(rest);
      data.set(value, rest.length);
      let at = 0;
      const view = new DataView(data.buffer);
      while (at + 8 <= data.length) {
        const turn = view.getUint32(at), size = view.getUint32(at + 4);
        if (at + 8 + size > data.length) break;
        this.take(turn, data.slice(at + 8, at + 8 + size));
        at += 8 + size;
      }
      rest = data.slice(at);
      changed();
    }
    this.over = true;
    changed();
  }
  take(turn, data) {
    if (turn === END) return void Object.assign(this, JSON.parse(new TextDecoder().decode(data)));
    const known = this.starts.get(turn);
    if (known) known.count += 1;
    else this.starts.set(turn, { first: this.frames.length, count: 1 });
    this.frames.push({ turn, data });
  }
  /** Whether all pictures that lead to a turn are here. */
  has(turn) {
    return this.over || (this.frames.length > 0 && this.frames[this.frames.length - 1].turn > turn);
  }
  /** How many milliseconds the pictures last that lead to a turn. */
  lasts(turn) {
    return (this.starts.get(turn)?.count ?? 0) * (this.milliseconds ?? 0);
  }
  /** The picture of a turn, or some milliseconds into the way to it. Null until it is loaded. */
  at(turn, into = Infinity) {
    const found = this.starts.get(turn);
    if (found) return this.frames[found.first + Math.min(Math.floor(into / (this.milliseconds || 1)), found.count - 1)];
    let low = 0, high = this.frames.length; // the last one before it
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.frames[middle].turn <= turn) low = middle + 1;
      else high = middle;
    }
    return low ? this.frames[low - 1] : null;
  }
  close() {
    this.stop.abort();
  }
}

export class Screen {
  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
    this.shown = null;
    this.wanted = null;
    this.busy = false;
  }
  /** Draw a picture; of several asked for while one is decoded only the last is drawn. */
  async draw(frame) {
    this.wanted = frame;
    if (this.busy || frame === this.shown || !frame) return;
    this.busy = true;
    try {
      while (this.wanted && this.wanted !== this.shown) {
        const next = this.wanted;
        const picture = await createImageBitmap(new Blob([next.data]));
        if (this.canvas.width !== picture.width || this.canvas.height !== picture.height) {
          this.canvas.width = picture.width;
          this.canvas.height = picture.height;
          this.canvas.classList.toggle("small", picture.width < 200);
        }
        this.context.drawImage(picture, 0, 0);
        picture.close();
        this.shown = next;
      }
    } finally {
      this.busy = false;
    }
  }
  clear() {
    this.shown = this.wanted = null;
  }
}
