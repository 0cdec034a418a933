// Pages that are opened as files may not start workers: the one of the search runs in a hidden frame instead, on the page's own thread.
if (location.protocol === "file:") {
  // The script of the search looks for this name to learn that it is in a frame.
  window.IFrameWorker = class extends EventTarget {
    #frame = document.createElement("iframe");

    constructor(url) {
      super();
      const whole = new URL(url, location.href);
      this.#frame.hidden = true;
      document.body.append(this.#frame);
      const inside = this.#frame.contentWindow;
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      const load = (address) =>
        new Promise((loaded, failed) => {
          const script = inside.document.createElement("script");
          script.onload = loaded;
          script.onerror = () => failed(new Error(`${address} cannot be loaded`));
          script.src = new URL(address, whole);
          inside.document.body.append(script);
        });
      inside.importScripts = (...addresses) => addresses.reduce((before, address) => before.then(() => load(address)), Promise.resolve());
      this.ready = load(whole);
    }

    postMessage(data) {
      const inside = this.#frame.contentWindow;
      this.ready.then(() => inside.dispatchEvent(new inside.MessageEvent("message", { data })));
    }

    terminate() {
      this.#frame.remove();
    }
  };
  window.Worker = window.IFrameWorker;
}
