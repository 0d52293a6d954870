// The page itself: served by its script, used without a mouse, in light and dark.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createServer } from "node:net";
import path from "node:path";
import { after, before, test } from "node:test";
import { PAGE, ROOT, browse, serve } from "./harness.mjs";
import { Page, until } from "./page.mjs";

let browser;
before(async () => (browser = await browse()));
after(() => browser?.close());

async function onPage(body) {
  const server = await serve({ "": PAGE });
  const page = await Page.open(browser.context, server.origin);
  try {
    await page.vocabularyStatus();
    await body(page);
    assert.deepEqual(page.faults, []);
  } finally {
    await page.tab.close();
    server.close();
  }
}

/** A port that nobody listens on. */
async function freePort() {
  const server = createServer();
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

async function answers(origin) {
  for (let tries = 0; tries < 100; tries += 1) {
    if (await fetch(origin).then((response) => response.ok, () => false)) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  assert.fail(`${origin} does not answer`);
}

test("scripts/serve-page serves a page that works", async () => {
  const port = await freePort();
  const server = spawn(path.join(ROOT, "scripts/serve-page"), [String(port)], { stdio: "ignore" });
  try {
    const origin = `http://127.0.0.1:${port}`;
    await answers(origin);
    const page = await Page.open(browser.context, origin);
    assert.match(await page.vocabularyStatus(), /163,840 ids/);
    assert.equal((await page.generate({ steps: 1 })).length, 1);
    assert.deepEqual(page.faults, []);
    await page.tab.close();
  } finally {
    server.kill();
  }
});

test("everything is reached with the keyboard, in the order of the page", () =>
  onPage(async (page) => {
    await page.fill("word ".repeat(600));
    await page.tab.evaluate(() => document.activeElement.blur());
    const reached = [];
    for (let key = 0; key < 14; key += 1) {
      await page.tab.keyboard.press("Tab");
      reached.push(await page.tab.evaluate(() => {
        const { id, name, tagName, ariaLabel } = document.activeElement;
        return id || name || ariaLabel || tagName.toLowerCase();
      }));
    }
    const expected = [
      "vocabulary", "text", "mode", "next", "copy", "summary", "prompt", "steps", "backend", "generate",
      "Table of generated ids",
    ];
    const from = reached.indexOf("vocabulary");
    assert.deepEqual(reached.slice(from, from + expected.length), expected);
    await page.tab.locator("#next").focus();
    await page.tab.keyboard.press("Enter");
    await until(page.tab, () => document.querySelector("#shown").textContent.startsWith("501 "));
    await page.tab.locator("#steps").focus();
    await page.tab.keyboard.press("Enter");
    await until(page.tab, () => document.querySelectorAll("#generated tr").length === 20);
  }));

test("every control has a name, every heading its level, and changes are announced", () =>
  onPage(async (page) => {
    await page.tab.locator("#table-box summary").click();
    const controls = await page.tab.locator("input, textarea, select, button, [role=region], nav, section, ol").all();
    assert.ok(controls.length > 10);
    for (const control of controls) {
      const name = (await control.ariaSnapshot()).split("\n")[0];
      assert.match(name, /^- [a-z]+ "[^"]+"/, `${await control.evaluate((node) => node.outerHTML)} has no name: ${name}`);
    }
    const levels = await page.tab.locator("h1, h2, h3").evaluateAll((nodes) => nodes.map((node) => node.tagName).join());
    assert.equal(levels, "H1,H2,H3,H2");
    await page.fill("The capital");
    const announcement = page.tab.getByRole("status").filter({ hasText: "2 tokens, 11 characters, 11 bytes" });
    await announcement.waitFor({ state: "attached" });
  }));

for (const colorScheme of ["light", "dark"]) {
  test(`text can be read on every background, ${colorScheme}`, () =>
    onPage(async (page) => {
      await page.tab.emulateMedia({ colorScheme });
      await page.fill("The capital of France is <|open|>");
      const ratios = await page.tab.evaluate(contrasts);
      assert.ok(ratios.length > 30, `${ratios.length} texts`);
      for (const [ratio, text] of ratios) assert.ok(ratio >= 4.5, `contrast ${ratio.toFixed(2)} of ${text}`);
      const light = await page.tab.evaluate(() => getComputedStyle(document.body).backgroundColor);
      assert.equal(/rgb\(2\d\d,/.test(light), colorScheme === "light", light);
    }));
}

/** Runs in the page: the contrast of each text that is shown, as WCAG defines it, but for disabled buttons. */
function contrasts() {
  const channels = (color) => color.match(/[\d.]+/g).map(Number);
  const linear = (value) => (value / 255 <= 0.04045 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4);
  const luminance = ([red, green, blue]) => 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue);
  const background = (node) => {
    const color = channels(getComputedStyle(node).backgroundColor);
    return color[3] === 0 ? background(node.parentElement) : color;
  };
  const found = [];
  for (const node of document.body.querySelectorAll("*")) {
    const texts = Array.from(node.childNodes).filter((child) => child.nodeType === Node.TEXT_NODE);
    const text = texts.map((child) => child.data).join(" ").trim();
    if (!text || !node.checkVisibility() || node.matches(":disabled, option")) continue;
    const [a, b] = [channels(getComputedStyle(node).color), background(node)].map(luminance).sort((a, b) => b - a);
    found.push([(a + 0.05) / (b + 0.05), text.slice(0, 30)]);
  }
  return found;
}
