// The tokenizer's part of the page.
import { byId, element, readable, readableTime, showError } from "./elements.js";
import { hexadecimal, visibleText } from "./token-text.js";

/** Files longer than this are not read. The released vocabulary has 2.8 MB. */
const MOST_BYTES = 256 << 20;

/** After so long without a change the counts are read out to those who listen. */
const QUIET_MILLISECONDS = 1000;

export class TokenizerView {
  #client;
  #loaded = false;
  #busy = false;
  #changed = false;
  #shown = { start: 0, part: 0, total: 0, tokens: [] };
  #announcement = 0;

  constructor(client) {
    this.#client = client;
    byId("vocabulary").addEventListener("change", (event) => this.#choose([...event.target.files]));
    byId("text").addEventListener("input", () => this.#update());
    for (const radio of document.getElementsByName("mode")) radio.addEventListener("change", () => this.#update());
    byId("previous").addEventListener("click", () => this.#turn(-1));
    byId("next").addEventListener("click", () => this.#turn(1));
    byId("copy").addEventListener("click", () => this.#copy());
    byId("table-box").addEventListener("toggle", () => this.#showTable());
  }

  /** Loads the vocabulary that came with the page. */
  loadBundled() {
    return this.#load("the file that came with this page", async () => {
      const response = await fetch("tiktoken.model");
      if (!response.ok) throw new Error(`tiktoken.model: the server answers ${response.status}`);
      return { model: new Uint8Array(await response.arrayBuffer()) };
    });
  }

  async #choose(files) {
    if (files.length > 0) await this.#load(files.map((file) => file.name).join(", "), () => contents(files));
  }

  /** Loads the files that `read` resolves with. If they are refused, nothing changes. */
  async #load(name, read) {
    byId("vocabulary-status").textContent = "Reading the vocabulary.";
    try {
      const { size, milliseconds } = await this.#client.request("loadVocabulary", await read());
      this.#loaded = true;
      const time = readableTime(milliseconds);
      byId("vocabulary-status").textContent = `${readable(size)} ids from ${name}, read in ${time}.`;
      showError(byId("vocabulary-error"), null);
    } catch (error) {
      byId("vocabulary-status").textContent = this.#loaded
        ? "The vocabulary that was loaded before is still in use."
        : "No vocabulary is loaded.";
      showError(byId("vocabulary-error"), error);
    }
    this.#update();
  }

  /** Encodes what the box holds now. While the worker is busy, only the fact that something changed is kept. */
  async #update() {
    if (!this.#loaded) return;
    this.#changed = true;
    byId("tokens").setAttribute("aria-busy", "true");
    if (this.#busy) return;
    this.#busy = true;
    while (this.#changed) {
      this.#changed = false;
      const mode = document.querySelector("input[name=mode]:checked").value;
      try {
        this.#showResult(await this.#client.request("encode", { text: byId("text").value, mode }));
        showError(byId("text-error"), null);
      } catch (error) {
        showError(byId("text-error"), error);
      }
    }
    this.#busy = false;
    byId("tokens").setAttribute("aria-busy", "false");
  }

  #showResult(result) {
    const sameText = result.sameText ? "same text ✓" : "another text ✗";
    byId("count-tokens").textContent = readable(result.total);
    byId("count-characters").textContent = readable(result.characters);
    byId("count-bytes").textContent = readable(result.bytes);
    byId("round-trip").textContent = sameText;
    byId("encode-time").textContent = readableTime(result.milliseconds);
    byId("copy").disabled = result.total === 0;
    this.#showTokens(result);
    const { total, characters, bytes } = result;
    const counts = `${readable(total)} tokens, ${readable(characters)} characters, ${readable(bytes)} bytes`;
    this.#announce(`${counts}; decoded again: ${result.sameText ? "the same text" : "another text"}`);
  }

  #announce(text) {
    clearTimeout(this.#announcement);
    this.#announcement = setTimeout(() => (byId("announcement").textContent = text), QUIET_MILLISECONDS);
  }

  #showTokens(shown) {
    this.#shown = shown;
    const { start, total, tokens } = shown;
    const end = start + tokens.length;
    const range = `${readable(start + 1)} to ${readable(end)} of ${readable(total)}`;
    byId("shown").textContent = total === 0 ? "None" : range;
    byId("previous").disabled = start === 0;
    byId("next").disabled = end >= total;
    byId("tokens").replaceChildren(...tokens.map(listItem));
    this.#showTable();
  }

  #showTable() {
    const { start, tokens } = this.#shown;
    const rows = byId("table-box").open ? tokens.map((token, index) => tableRow(token, start + index + 1)) : [];
    byId("table").replaceChildren(...rows);
  }

  async #turn(direction) {
    const start = this.#shown.start + direction * this.#shown.part;
    try {
      this.#showTokens(await this.#client.request("tokens", { start }));
      this.#announce(`Tokens ${byId("shown").textContent}`);
    } catch (error) {
      showError(byId("text-error"), error);
    }
  }

  async #copy() {
    try {
      await navigator.clipboard.writeText(await this.#client.request("allIds"));
      this.#announce("The ids are on the clipboard.");
      showError(byId("text-error"), null);
    } catch (error) {
      showError(byId("text-error"), error);
    }
  }
}

/** What the chosen files hold; the name tells which is which. */
async function contents(files) {
  const given = {};
  for (const file of files) {
    if (file.size > MOST_BYTES) throw new Error(`${file.name}: ${readable(file.size)} bytes are too many`);
    const kind = file.name.endsWith(".json") ? "config" : "model";
    if (given[kind]) throw new Error(`${file.name}: choose one vocabulary and at most one .json file`);
    given[kind] = new Uint8Array(await file.arrayBuffer());
  }
  return given;
}

function listItem({ id, bytes, special }) {
  const item = element("li", {}, element("bdi", {}, visibleText(bytes)), element("small", {}, String(id)));
  if (special) {
    item.className = "special";
    item.append(element("span", { className: "spoken-only" }, "special token"));
  }
  return item;
}

function tableRow({ id, bytes, special }, number) {
  const text = element("td", {}, element("bdi", {}, visibleText(bytes)), special ? " (special)" : "");
  const hex = element("td", { className: "bytes" }, hexadecimal(bytes));
  return element("tr", {}, element("td", {}, readable(number)), element("td", {}, String(id)), text, hex);
}
