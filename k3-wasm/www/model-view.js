// The model's part of the page.
import { byId, element, readable, readableTime, showError } from "./elements.js";

const nameOf = (backend) => (backend === "simd128" ? "SIMD128" : backend);

export class ModelView {
  #client;
  #native = null;

  constructor(client) {
    this.#client = client;
    byId("model-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#generate();
    });
  }

  /** Loads the model, and what the native program computed with it. */
  async load(backends) {
    try {
      const options = backends.map((name) => element("option", { value: name }, nameOf(name)));
      byId("backend").replaceChildren(...options.reverse());
      this.#native = await (await fetch("native.json")).json();
      byId("prompt").value = this.#native.prompt_ids.join(", ");
      const { layers, vocabulary } = await this.#client.request("openModel", { folder: "model" });
      byId("model-status").textContent = `Ready: ${layers} layers, ${vocabulary} ids.`;
      byId("generate").disabled = false;
    } catch (error) {
      byId("model-status").textContent = "";
      showError(byId("model-error"), error);
    }
  }

  async #generate() {
    byId("generate").disabled = true;
    byId("model-status").textContent = "Generating.";
    byId("generated").replaceChildren();
    showError(byId("model-error"), null);
    try {
      const prompt = parseIds(byId("prompt").value);
      const run = new Run(this.#nativeSteps(prompt));
      const wanted = { prompt, count: byId("steps").valueAsNumber, backend: byId("backend").value };
      const backend = await this.#client.request("generate", wanted, (step) => {
        byId("generated").append(run.row(step));
      });
      byId("model-status").textContent = `${run.summary()} Kernels: ${nameOf(backend)}.`;
    } catch (error) {
      byId("model-status").textContent = "";
      showError(byId("model-error"), error);
    }
    byId("generate").disabled = false;
  }

  /** What the native program computed after this prompt: nothing, if it was another one. */
  #nativeSteps(prompt) {
    const same = prompt.join() === this.#native.prompt_ids.join();
    return same ? this.#native.steps : [];
  }
}

/** The steps of one run, compared with those of a native one. */
class Run {
  #native;
  #steps = 0;
  #equal = 0;
  #different = 0;
  #seconds = 0;

  constructor(native) {
    this.#native = native;
  }

  /** The table's row for the next step. */
  row(step) {
    const native = this.#native[this.#steps];
    this.#steps += 1;
    this.#seconds += step.seconds;
    const cells = [this.#steps, step.id, step.logits_hash, native?.logits_hash ?? "–", this.#compare(step, native)];
    return element("tr", {}, ...cells.map((cell) => element("td", {}, String(cell))));
  }

  #compare(step, native) {
    if (!native) return "no native run";
    const equal = step.id === native.id && step.logits_hash === native.logits_hash;
    if (equal) this.#equal += 1;
    else this.#different += 1;
    return equal ? "equal ✓" : "different ✗";
  }

  summary() {
    const compared = this.#equal + this.#different;
    const verdict = compared === 0
      ? "There is no native run of this prompt to compare with."
      : `${readable(this.#equal)} of ${readable(compared)} steps have the native logits, bit for bit.`;
    return `${verdict} ${readableTime((1000 * this.#seconds) / this.#steps)} per step, the prompt included.`;
  }
}

/** The ids that a text lists. */
function parseIds(text) {
  return text.split(/[\s,]+/).filter(Boolean).map((word) => {
    const id = Number(word);
    if (!/^\d+$/.test(word) || id > 0xffffffff) throw new Error(`${word}: not an id`);
    return id;
  });
}
