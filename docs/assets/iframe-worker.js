// Lets pages that are opened from a disk search: browsers start no Worker there. The theme's search
// takes window.IFrameWorker for one; this runs the worker's script in a hidden frame and hands
// messages over. On http(s) the browser's own Worker is used.
if (location.protocol === "file:") {
  class IFrameWorker extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.appendChild(this.frame);
      const page = this.frame.contentDocument;
      page.open(); // from now on it is this document, also where a blank one is still to be loaded
      page.write("<!doctype html><body></body>");
      page.close();
      const inner = this.frame.contentWindow;
      // What a worker has and a frame has not.
      inner.postMessage = (data) => {
        const message = new MessageEvent("message", { data });
        this.dispatchEvent(message);
        this.onmessage?.(message);
      };
      inner.importScripts = (...urls) => Promise.all(urls.map((one) => this.load(one)));
      this.ready = this.load(url);
    }
    load(url) {
      const page = this.frame.contentDocument;
      const script = page.createElement("script");
      script.src = new URL(url, location);
      page.body.appendChild(script);
      return new Promise((resolve, reject) => {
        script.onload = resolve;
        script.onerror = () => reject(new Error(`${url} cannot be loaded`));
      });
    }
    postMessage(data) {
      this.ready.then(() =>
        this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data })),
      );
    }
    terminate() {
      this.frame.remove();
    }
  }
  window.IFrameWorker = window.Worker = IFrameWorker;
}
