// How soon a large report is of use: `scripts/bench report`. Fails where it takes too long.
import { statSync } from "node:fs";
import { fresh, close } from "./browser.mjs";

const ROUNDS = 5;
/** The largest file in bytes; then milliseconds. */
const LIMITS = { bytes: 5_000_000, ready: 2000, timeline: 100, name: 100 };

/** How long it takes from the next movement of the mouse to the picture that answers it. */
async function answerTo(page, move) {
  await page.evaluate(() => {
    window.answer = new Promise((resolve) => {
      const answered = () => {
        const begun = performance.now();
        requestAnimationFrame(() => setTimeout(() => resolve(performance.now() - begun)));
      };
      document.addEventListener("pointermove", answered, { once: true, capture: true });
    });
  });
  await move();
  return page.evaluate(() => window.answer);
}

async function round(file) {
  const { page, context } = await fresh({});
  const begun = performance.now();
  await page.goto(`file://${file}`);
  await page.waitForSelector("html[data-ready=true]", { state: "attached", timeout: 120_000 });
  const ready = performance.now() - begun;
  const canvas = page.locator("#history canvas[tabindex]");
  await canvas.scrollIntoViewIfNeeded();
  const box = await canvas.boundingBox();
  const timeline = await answerTo(page, () => page.mouse.move(box.x + 600, box.y + 70));
  const link = page.locator("article a.txn").first();
  await link.scrollIntoViewIfNeeded();
  const place = await link.boundingBox();
  const name = await answerTo(page, () => page.mouse.move(place.x + 4, place.y + 6));
  await context.close();
  return { ready, timeline, name };
}

const [file] = process.argv.slice(2);
const rounds = [];
for (let at = 0; at < ROUNDS; at++) rounds.push(await round(file));
await close();
const median = (name) => rounds.map((one) => one[name]).sort((a, b) => a - b)[ROUNDS >> 1];
const figures = {
  bytes: [statSync(file).size, "bytes"],
  ready: [median("ready"), "ms until it is ready"],
  timeline: [median("timeline"), "ms until the first bar that is pointed at answers"],
  name: [median("name"), "ms until the first name that is pointed at answers"],
};
for (const [name, [figure, words]] of Object.entries(figures)) {
  const isFine = figure <= LIMITS[name];
  console.log(`${Math.round(figure).toLocaleString("en").padStart(10)} ${words} (at most ${LIMITS[name].toLocaleString("en")})${isFine ? "" : ": TOO MUCH"}`);
  if (!isFine) process.exitCode = 1;
}
