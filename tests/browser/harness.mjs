// What the tests share: a server of the page, a browser, and a watch over what the page does.
import { execFileSync } from "node:child_process";
import { createServer } from "node:http";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

export const ROOT = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../..");
export const TARGET = path.resolve(ROOT, process.env.CARGO_TARGET_DIR ?? "target");
export const PAGE = path.join(TARGET, "page");
const K3_HOST = path.join(TARGET, "release/k3-host");

const TYPES = {
  ".html": "text/html",
  ".js": "text/javascript",
  ".json": "application/json",
  ".css": "text/css",
  ".svg": "image/svg+xml",
  ".wasm": "application/wasm",
};

/** Without these flags Chromium calls home. As root it has no sandbox. */
const FLAGS = [
  "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync",
];

/** What the native program prints. */
export function native(...args) {
  return execFileSync(K3_HOST, args, { cwd: ROOT, encoding: "utf8", maxBuffer: 1 << 28 }).trim();
}

/** Serves folders by their first path segment (`""`: all else) on this machine; `replaced` stands in for files. */
export async function serve(folders, replaced = {}) {
  const server = createServer(async (request, response) => {
    const name = decodeURIComponent(new URL(request.url, "http://host").pathname).slice(1) || "index.html";
    const [first, ...rest] = name.split("/");
    const file = first in folders ? path.join(folders[first], ...rest) : path.join(folders[""], name);
    try {
      const body = replaced[name] ?? (await readFile(file));
      response.writeHead(200, { "content-type": TYPES[path.extname(name)] ?? "application/octet-stream" }).end(body);
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { origin: `http://127.0.0.1:${server.address().port}`, close: () => server.close() };
}

/** Starts Chromium with a profile of its own. */
export async function browse() {
  const profile = await mkdtemp(path.join(tmpdir(), "k3-browser-"));
  const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
  const context = await chromium.launchPersistentContext(profile, { executablePath, args: FLAGS, headless: true });
  const close = async () => {
    await context.close();
    await rm(profile, { recursive: true, force: true });
  };
  return { context, close };
}

/** A new tab, with everything in it that should not happen: errors, and requests that leave `origin`. */
export async function watchedTab(context, origin) {
  const tab = await context.newPage();
  const faults = [];
  tab.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) faults.push(`console: ${message.text()}`);
  });
  tab.on("pageerror", (error) => faults.push(`uncaught: ${error.message}`));
  tab.on("request", (request) => {
    if (new URL(request.url()).origin !== origin) faults.push(`request to ${request.url()}`);
  });
  tab.on("requestfailed", (request) => faults.push(`failed: ${request.url()}`));
  return { tab, faults };
}
