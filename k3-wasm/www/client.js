// The page's side of a worker: requests as promises.

export class Client {
  #worker = new Worker(new URL("worker.js", import.meta.url), { type: "module" });
  #waiting = new Map();
  #last = 0;

  constructor() {
    this.#worker.onmessage = ({ data }) => this.#receive(data);
    // The worker's script did not load, or failed outside any request.
    this.#worker.onerror = (event) => {
      const error = new Error(event.message ?? "the worker did not start: this browser may be too old");
      for (const { reject } of this.#waiting.values()) reject(error);
      this.#waiting.clear();
    };
  }

  /** Asks for work of a kind; resolves with its result. `onStep` hears of what comes before the result. */
  request(kind, fields = {}, onStep = undefined) {
    const id = (this.#last += 1);
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject, onStep });
      this.#worker.postMessage({ ...fields, id, kind });
    });
  }

  #receive({ id, step, error, result }) {
    const waiting = this.#waiting.get(id);
    if (step) {
      waiting.onStep(step);
      return;
    }
    this.#waiting.delete(id);
    if (error === undefined) waiting.resolve(result);
    else waiting.reject(new Error(error));
  }
}
