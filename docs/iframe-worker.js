// Let search work in pages that are opened from the disk. Browsers refuse Web Workers there, so the script of the worker
// runs in a hidden frame, and messages to and from it are passed on.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      const inner = frame.contentWindow;
      inner.document.write("<body></body>");
      inner.document.close();
      inner.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      const script = inner.document.createElement("script");
      const ready = new Promise((loaded) => (script.onload = loaded));
      script.src = address;
      inner.document.body.append(script);
      this.postMessage = (data) => ready.then(() => inner.dispatchEvent(new inner.MessageEvent("message", { data })));
      this.terminate = () => frame.remove();
    }
  };
}
