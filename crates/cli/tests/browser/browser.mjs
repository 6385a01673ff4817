// A real browser with a report in it, and what the tests ask of it.
import { chromium } from "playwright-core";
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { execFileSync } from "node:child_process";
import assert from "node:assert/strict";
import path from "node:path";

/** Where the reports are, and where pictures of them go. */
export const directory = process.env.ISOLARIO_REPORTS ?? ".";
const screenshots = path.join(directory, "screenshots");
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

function executable() {
  for (const name of ["chromium", "chromium-browser", "google-chrome"]) {
    try {
      return execFileSync("which", [name], { encoding: "utf8" }).trim();
    } catch {
      // Not by this name.
    }
  }
  throw new Error("there is no Chromium: install it with 'apt-get install chromium'");
}

let running;

async function browser() {
  // The sandbox refuses to work for root, as which containers run their tests.
  const args = process.getuid() === 0 ? ["--no-sandbox"] : [];
  running ??= chromium.launch({ executablePath: executable(), args });
  return running;
}

export async function close() {
  await (await running)?.close();
}

/** An empty page in a context of its own. */
export async function fresh(options) {
  const context = await (await browser()).newContext({ viewport: { width: 1280, height: 900 }, acceptDownloads: true, ...options });
  return { context, page: await context.newPage() };
}

/** Opens a report and passes it on; afterwards there must have been no complaint and no request. */
export async function withReport(name, options, use) {
  const { context, page } = await fresh(options);
  const complaints = [];
  page.on("console", (message) => {
    // Reading pixels is what the tests do, not the page.
    const isOurs = message.text().includes("willReadFrequently");
    if (["error", "warning"].includes(message.type()) && !isOurs) complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("dialog", (dialog) => {
    complaints.push(`dialog: ${dialog.message()}`);
    dialog.dismiss();
  });
  page.on("request", (request) => {
    if (!/^(file|blob):/.test(request.url())) complaints.push(`request: ${request.url()}`);
  });
  await page.goto(`file://${path.join(directory, name)}`);
  if (options.javaScriptEnabled !== false) {
    await page.waitForSelector("html[data-ready=true]", { state: "attached", timeout: 120_000 });
  }
  await use(page);
  await context.close();
  assert.deepEqual(complaints, []);
}

export async function keep(target, name, options) {
  await target.screenshot({ path: path.join(screenshots, `${name}.png`), ...options });
}

/** What is wrong for people who see, hear or move otherwise. */
export async function accessibility(page) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => window.axe.run());
  return violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html.slice(0, 200)}`));
}

/** How many different colours a canvas shows below its axis and beside its names. */
export async function coloursOf(canvas, from = 30) {
  return canvas.evaluate(async (element, from) => {
    await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
    const { data } = element.getContext("2d").getImageData(112, from, element.width - 112, element.height - from);
    const colours = new Set();
    for (let at = 0; at < data.length; at += 4) colours.add((data[at] << 16) | (data[at + 1] << 8) | data[at + 2]);
    return colours.size;
  }, from);
}
