// Pages that are opened as files may not start workers, which the search is: a frame runs its script instead.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      const load = (source) => new Promise((done, failed) => {
        const script = frame.contentDocument.createElement("script");
        Object.assign(script, { src: source, onload: done, onerror: failed });
        frame.contentDocument.body.append(script);
      });
      this.ready = new Promise((begin) => {
        const start = () => {
          document.body.append(frame);
          const inside = frame.contentWindow;
          inside.document.open();
          inside.document.write("<!doctype html><body></body>");
          inside.document.close();
          inside.postMessage = (data) => {
            const event = new MessageEvent("message", { data });
            this.dispatchEvent(event);
            if (this.onmessage) this.onmessage(event);
          };
          inside.importScripts = (...sources) => sources.reduce((before, one) => before.then(() => load(one)), Promise.resolve());
          load(url).then(() => begin(inside));
        };
        if (document.body) start(); else addEventListener("DOMContentLoaded", start);
      });
    }
    postMessage(data) {
      this.ready.then((inside) => inside.dispatchEvent(new inside.MessageEvent("message", { data })));
    }
    terminate() {}
  };
}
