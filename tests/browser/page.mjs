// The page as a test sees it: what a user does, and what is then to be seen.
import { watchedTab } from "./harness.mjs";

const MOST_MILLISECONDS = 30_000;

/** Waits until `condition`, which runs in the tab, holds. (Playwright's own way needs `eval`, which the page forbids.) */
export async function until(tab, condition) {
  const end = Date.now() + MOST_MILLISECONDS;
  while (!(await tab.evaluate(condition))) {
    if (Date.now() > end) throw new Error(`never came true: ${condition}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

export class Page {
  constructor(tab, faults) {
    this.tab = tab;
    this.faults = faults;
  }

  /** Opens the page at `origin` and waits until the model, or a message in its place, is there. */
  static async open(context, origin) {
    const { tab, faults } = await watchedTab(context, origin);
    await context.grantPermissions(["clipboard-read", "clipboard-write"], { origin });
    await tab.goto(`${origin}/`);
    await until(tab, () => !document.querySelector("#model-status").textContent.startsWith("Loading"));
    return new Page(tab, faults);
  }

  text(id) {
    return this.tab.locator(`#${id}`).innerText();
  }

  /** The text of an error that is shown, or null. */
  async error(id) {
    const place = this.tab.locator(`#${id}`);
    return (await place.isVisible()) ? place.innerText() : null;
  }

  /** Waits until a vocabulary was read or refused. */
  async vocabularyStatus() {
    await until(this.tab, () => !document.querySelector("#vocabulary-status").textContent.startsWith("Reading"));
    return this.text("vocabulary-status");
  }

  async chooseVocabulary(...files) {
    await this.tab.getByLabel("Vocabulary files").setInputFiles(files);
    await this.vocabularyStatus();
    await this.encoded();
  }

  /** Waits until what is shown is of the text in the box. */
  async encoded() {
    await until(this.tab, () => document.querySelector("#tokens").getAttribute("aria-busy") !== "true");
  }

  /** Puts a text into the box at once. */
  async fill(text) {
    await this.tab.getByLabel("Text", { exact: true }).evaluate((box, text) => {
      box.value = text;
      box.dispatchEvent(new InputEvent("input", { bubbles: true }));
    }, text);
    await this.encoded();
  }

  async chooseMode(label) {
    await this.tab.getByLabel(label).check();
    await this.encoded();
  }

  /** All ids, through the clipboard. */
  async allIds() {
    await this.tab.evaluate(() => navigator.clipboard.writeText("nothing was copied"));
    await this.tab.getByRole("button", { name: "Copy all ids" }).click();
    await until(this.tab, async () => (await navigator.clipboard.readText()) !== "nothing was copied");
    return this.tab.evaluate(() => navigator.clipboard.readText());
  }

  /** Generates and returns the table: number, id, hash here, native hash, verdict. */
  async generate({ prompt, steps, backend } = {}) {
    if (prompt !== undefined) await this.tab.getByLabel("Prompt, as ids").fill(prompt);
    if (steps !== undefined) await this.tab.getByLabel("Ids to generate").fill(String(steps));
    if (backend !== undefined) await this.tab.getByLabel("Kernels").selectOption(backend);
    await this.tab.getByRole("button", { name: "Generate" }).click();
    await until(this.tab, () => !document.querySelector("#generate").disabled);
    const rows = await this.tab.locator("#generated tr").all();
    return Promise.all(rows.map((row) => row.locator("td").allInnerTexts()));
  }
}
