// Browsers start no workers from files: a page that was opened from a disk searches in a hidden frame of its own.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.waiting = [];
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      this.frame.onload = () => this.start(new URL(url, location.href).href);
      document.body.append(this.frame);
    }
    start(url) {
      this.frame.onload = null;
      const inside = this.frame.contentWindow;
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", {data}));  // what the worker answers
      const script = inside.document.createElement("script");
      script.onload = () => {
        this.inside = inside;
        this.waiting.forEach((data) => this.postMessage(data));
      };
      script.src = url;
      inside.document.body.append(script);
    }
    postMessage(data) {
      if (this.inside) this.inside.dispatchEvent(new MessageEvent("message", {data}));
      else this.waiting.push(data);
    }
    terminate() {
      this.frame.remove();
    }
  };
}
