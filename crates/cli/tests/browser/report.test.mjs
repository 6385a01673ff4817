// The HTML report as a person uses it.
import { test, after } from "node:test";
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { accessibility, close, coloursOf, keep, withReport } from "./browser.mjs";

after(close);

/** Bad reads hide what needs good ones, so there are two reports. */
const PLANTED = {
  "reads.html": ["ThinAirRead", "AbortedRead", "IntermediateRead", "CyclicCO"],
  "anomalies.html": ["FracturedReadCO", "COConflictCM", "ConflictCM", "LongFork", "LostUpdate", "WriteSkew", "StaleRead"],
};

test("every anomaly has its words, its graph and its timeline", async () => {
  for (const [report, kinds] of Object.entries(PLANTED)) {
    await withReport(report, {}, async (page) => {
      for (const kind of kinds) {
        const article = page.locator(`article[data-kind=${kind}]`).first();
        assert.match(await article.locator(".rules-out").textContent(), /^rules out/);
        assert.match(await article.locator(".happened").textContent(), /\. .*\./);
        assert.ok((await article.locator("svg.picture:not(.all) .node").count()) > 0, kind);
        assert.ok((await coloursOf(article.locator("canvas"))) > 2, kind);
        await keep(article, `anomaly-${kind}`);
      }
    });
  }
});

test("anomalies are filtered by pattern and by level", async () => {
  await withReport("anomalies.html", {}, async (page) => {
    const shown = () => page.locator("article.anomaly:visible").count();
    const all = await shown();
    await page.selectOption("select[name=kind]", "LostUpdate");
    assert.equal(await shown(), 1);
    await page.selectOption("select[name=kind]", "");
    await page.selectOption("select[name=level]", "read-atomic");
    const weak = await shown();
    assert.ok(weak > 0 && weak < all, `${weak} of ${all}`);
    assert.match(await page.locator(".count").textContent(), new RegExp(`^${weak} of ${all} shown`));
  });
});

test("boxes are moved by hand and by keys, and their arrows follow", async () => {
  await withReport("anomalies.html", {}, async (page) => {
    const svg = page.locator("article[data-kind=LostUpdate] svg.picture:not(.all)");
    const lines = () => svg.locator("path.line").evaluateAll((all) => all.map((line) => line.getAttribute("d")));
    const [node, before] = [svg.locator(".node").first(), await lines()];
    await svg.scrollIntoViewIfNeeded();
    const box = await node.boundingBox();
    await page.mouse.move(box.x + 20, box.y + 10);
    await page.mouse.down();
    await page.mouse.move(box.x + 80, box.y + 40, { steps: 4 });
    await page.mouse.up();
    const moved = await node.boundingBox();
    assert.ok(moved.x - box.x > 30 && moved.y - box.y > 15, JSON.stringify([box, moved]));
    assert.notDeepEqual(await lines(), before);
    await keep(page, "graph-moved");
    await node.focus();
    await page.keyboard.press("ArrowRight");
    assert.ok((await node.boundingBox()).x > moved.x);
  });
});

test("graphs are enlarged and put back", async () => {
  await withReport("anomalies.html", {}, async (page) => {
    const graph = page.locator("article[data-kind=LostUpdate] .graph");
    const view = () => graph.locator("svg:not(.all)").getAttribute("viewBox");
    const before = await view();
    await graph.getByRole("button", { name: "Enlarge the graph" }).click();
    assert.notEqual(await view(), before);
    await graph.getByRole("button", { name: "Reset the graph" }).click();
    assert.equal(await view(), before);
  });
});

test("an inferred arrow opens into its reasons, and other operations are shown on demand", async () => {
  await withReport("anomalies.html", {}, async (page) => {
    const graph = page.locator("article[data-kind=COConflictCM] .graph");
    const svg = graph.locator("svg:not(.all)");
    const inferred = svg.locator(".link.co.has-reasons").first();
    const reasons = svg.locator(".link.reason:visible");
    const open = await reasons.count();
    assert.ok(open >= 2);
    assert.equal(await inferred.getAttribute("aria-expanded"), "true");
    await inferred.focus();
    await page.keyboard.press("Enter");
    assert.equal(await inferred.getAttribute("aria-expanded"), "false");
    assert.ok((await reasons.count()) < open);
    await keep(graph, "graph-folded");
    await graph.getByLabel("reasons of inferred arrows").check();
    assert.equal(await reasons.count(), open);
    assert.match(await graph.locator(".told").textContent(), /although it also depends on/);
    await graph.getByLabel("all operations").check();
    assert.ok(await graph.locator("svg.all").isVisible());
    assert.ok(!(await svg.isVisible()));
  });
});

test("an argument by cases is gone through case by case", async () => {
  await withReport("cases.html", {}, async (page) => {
    const article = page.locator("article[data-kind=NoOrderPossible]");
    const tabs = article.getByRole("tab");
    const count = await tabs.count();
    assert.ok(count >= 2, `${count} cases`);
    const shown = async () => {
      assert.equal(await article.locator(".case:visible").count(), 1);
      const panel = article.getByRole("tabpanel");
      assert.ok(await panel.locator("svg.picture:not(.all) .node").first().isVisible());
      return [await panel.getAttribute("aria-label"), await panel.locator(".argument").first().textContent()];
    };
    const first = await shown();
    assert.ok(first[0].startsWith(`Case 1 of ${count}, if `), first[0]);
    await keep(article, "cases-first");
    await tabs.nth(1).click();
    const second = await shown();
    assert.ok(second[0].startsWith(`Case 2 of ${count}, if `), second[0]);
    assert.notEqual(second[1], first[1]);
    await page.keyboard.press("End");
    assert.ok((await shown())[0].startsWith(`Case ${count} of ${count}, if `));
    assert.equal(await tabs.last().getAttribute("aria-selected"), "true");
    for (let step = 1; step < count; step++) await page.keyboard.press("ArrowLeft");
    assert.deepEqual(await shown(), first);
    assert.deepEqual(await accessibility(page), []);
    await page.emulateMedia({ media: "print" });
    assert.equal(await article.locator(".case:visible").count(), count);
  });
  await withReport("cases.html", { javaScriptEnabled: false }, async (page) => {
    assert.ok((await page.locator(".case:visible svg.picture:not(.all)").count()) >= 2);
  });
});

test("the timeline answers to mouse and keys", async () => {
  await withReport("anomalies.html", {}, async (page) => {
    const canvas = page.locator("#history canvas[tabindex]");
    const told = page.locator("#history .told");
    await canvas.scrollIntoViewIfNeeded();
    await canvas.focus();
    const first = await told.textContent();
    assert.match(first, /session .*, committed|aborted|unknown/);
    await page.keyboard.press("ArrowRight");
    const second = await told.textContent();
    assert.notEqual(second, first);
    await page.keyboard.press("ArrowDown");
    assert.notEqual(await told.textContent(), second);
    for (const key of ["+", "+", "-", "0"]) await page.keyboard.press(key);
    assert.ok((await coloursOf(canvas)) > 2);
    const around = page.locator("article[data-kind=COConflictCM] .around");
    const box = await around.locator("canvas").boundingBox();
    await around.scrollIntoViewIfNeeded();
    await around.locator("canvas").hover({ position: { x: box.width / 2, y: 30 + 44 * 3 + 22 } });
    assert.match(await around.locator(".told").textContent(), /Reads from others: r .* from T/);
    await keep(around, "timeline-arrows");
  });
});

test("search finds keys, transactions and values, and a key shows its versions in order", async () => {
  await withReport("versions.html", {}, async (page) => {
    const input = page.getByRole("searchbox");
    const results = page.locator("#history .results");
    const details = page.locator(".details");
    await input.fill("stock");
    await results.getByRole("link", { name: "stock", exact: true }).click();
    const cells = details.locator("table tr td:nth-child(2)");
    assert.deepEqual(await cells.allTextContents(), ["w stock=10", "w stock=9", "w stock=8"]);
    await keep(page, "key-versions");
    await input.fill("T4");
    await results.getByRole("link", { name: "T4" }).click();
    assert.match(await details.locator("h3").textContent(), /^T4, session audit, committed/);
    await details.getByRole("link", { name: "T3" }).click();
    assert.match(await details.locator("h3").textContent(), /^T3,/);
    await page.keyboard.press("Escape");
    assert.ok(await details.isHidden());
    await input.fill("9");
    await results.getByText("w stock=9").waitFor();
    // Values are found by how they begin.
    await input.fill("1");
    await results.getByText("w stock=10").waitFor();
    await input.fill("3");
    await results.getByText("T3").waitFor();
    assert.equal(await results.getByRole("link").first().textContent(), "T3");
    await input.fill("no such thing");
    await results.getByText("Nothing of that name").waitFor();
  });
});

test("hostile names and values are shown as they are and run nothing", async () => {
  await withReport("hostile.html", {}, async (page) => {
    assert.equal(await page.evaluate(() => window.hacked), undefined);
    assert.equal(await page.locator("img, iframe, object, body script:not([type])").count(), 0);
    assert.ok((await page.getByText("<img src=x onerror=").count()) > 0);
    await page.getByRole("searchbox").fill("script");
    await page.locator("#history .results a").first().click();
    await page.locator("#history canvas[tabindex]").focus();
    await page.keyboard.press("ArrowRight");
    assert.equal(await page.evaluate(() => window.hacked), undefined);
    await keep(page, "hostile");
  });
});

test("a hundred thousand transactions scroll without a blank page", async () => {
  await withReport("large.html", {}, async (page) => {
    const canvas = page.locator("#history canvas[tabindex]");
    await canvas.scrollIntoViewIfNeeded();
    assert.match(await page.locator("#history p").first().textContent(), /All 100,\d{3} transactions/);
    const scroller = page.locator("#history .timeline");
    const rows = await scroller.evaluate((element) => element.scrollHeight - element.clientHeight);
    for (const share of [0, 0.25, 0.5, 0.75, 1]) {
      await scroller.evaluate((element, top) => (element.scrollTop = top), rows * share);
      assert.ok((await coloursOf(canvas)) > 2, `at ${share} of the sessions`);
    }
    await scroller.evaluate((element) => (element.scrollTop = 0));
    for (let step = 0; step < 12; step++) {
      await page.locator("#history").getByRole("button", { name: "Zoom in" }).click();
      assert.ok((await coloursOf(canvas)) > 2, `after ${step} steps of zooming`);
    }
    const box = await canvas.boundingBox();
    for (let step = 0; step < 8; step++) {
      await page.mouse.move(box.x + 900, box.y + 100);
      await page.mouse.down();
      await page.mouse.move(box.x + 300, box.y + 100, { steps: 5 });
      await page.mouse.up();
      assert.ok((await coloursOf(canvas)) > 2, `after ${step} pages`);
    }
    await keep(page, "large");
  });
});

test("a run shows what was tested and how it went", async () => {
  await withReport("run.html", {}, async (page) => {
    const run = page.locator("#run");
    for (const text of ["PostgreSQL 15.6", "repeatable read", "isolario run --db", "40001", "it was interrupted"]) {
      assert.ok((await run.getByText(text).count()) > 0, text);
    }
    assert.equal(await run.locator(".chart svg .series").count(), 6);
    // The second in which the run ended is not one: 44 points, and no drop at the end.
    const line = await run.locator("#throughput-title + svg .series.s0").getAttribute("d");
    assert.equal(line.match(/[ML]/g).length, 44);
    assert.equal(await page.locator("h1").textContent(), "PostgreSQL 15.6 at repeatable read: claim kept");
    assert.ok((await run.getByText("44,000 (93.8 %)").count()) > 0);
    assert.match(await run.locator(".events").textContent(), /node unreachable \(node 1\).*connection refused/s);
    await keep(run, "run");
  });
});

test("without scripts there are still verdicts, words and pictures", async () => {
  await withReport("anomalies.html", { javaScriptEnabled: false }, async (page) => {
    assert.ok(await page.locator(".verdict").isVisible());
    assert.ok(await page.locator("article svg.picture:not(.all)").first().isVisible());
    assert.match(await page.locator("ol.argument").first().textContent(), /which .* wrote/);
  });
});

/** Reports of everything that a page shows. */
const ALL = ["reads", "anomalies", "cases", "ring12", "ring40", "sessions", "long", "run", "satisfied", "several", "shrunk"];

test("everybody can use it: light and dark, on a telephone and on paper", async () => {
  for (const name of ALL) {
    for (const [look, options] of [
      ["light", { colorScheme: "light" }],
      ["dark", { colorScheme: "dark" }],
      ["400", { viewport: { width: 400, height: 800 } }],
    ]) {
      await withReport(`${name}.html`, options, async (page) => {
        const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        assert.ok(overflow <= 0, `${name} ${look}: ${overflow} pixels too wide`);
        assert.deepEqual(await accessibility(page), [], `${name} ${look}`);
        await keep(page, `${name}-${look}`, { fullPage: true });
        if (look !== "light") return;
        await page.emulateMedia({ media: "print" });
        assert.ok(!(await page.locator("nav").isVisible()));
        await keep(page, `${name}-print`, { fullPage: true });
      });
    }
  }
});

test("long cycles wrap, and very long ones fold and unfold", async () => {
  for (const [report, boxes] of [["ring12.html", 12], ["ring40.html", 40], ["ring120.html", 24]]) {
    await withReport(report, {}, async (page) => {
      const graph = page.locator("article .graph").first();
      const svg = graph.locator("svg:not(.all)");
      assert.ok((await svg.locator(".node").count()) >= boxes, report);
      // Letters are as large as those of the page, and nothing needs to be scrolled.
      const { scale, overflow } = await svg.evaluate((element) => ({
        scale: element.getBoundingClientRect().width / element.viewBox.baseVal.width,
        overflow: element.parentElement.scrollWidth - element.parentElement.clientWidth,
      }));
      assert.ok(scale > 0.9 && overflow <= 0, `${report}: ${scale}, ${overflow}`);
      await keep(graph, report.replace(".html", ""));
      if (boxes !== 24) return;
      await graph.getByLabel("all steps and operations").check();
      assert.equal(await graph.locator("svg.all .node").count(), 120);
    });
  }
});

/** What is wrong with the pictures of a page: arrows through boxes, and ends that meet. */
async function faultsOfPictures(page) {
  return page.locator("svg.picture").evaluateAll((pictures) =>
    pictures.flatMap((svg, number) => {
      const boxes = [...svg.querySelectorAll(".node > rect")].map((rect) => ["x", "y", "width", "height"].map((name) => Number(rect.getAttribute(name))));
      const lines = [...svg.querySelectorAll("path.line")];
      const faults = [];
      const ends = lines.map((line) => [line.getPointAtLength(0), line.getPointAtLength(line.getTotalLength())]);
      lines.forEach((line, at) => {
        const length = line.getTotalLength();
        for (let way = 3; way < length - 3; way += 3) {
          const { x, y } = line.getPointAtLength(way);
          const hit = boxes.findIndex(([left, top, w, h]) => x > left + 1 && x < left + w - 1 && y > top + 1 && y < top + h - 1);
          if (hit >= 0) {
            faults.push(`picture ${number}: arrow ${at} goes through box ${hit}`);
            break;
          }
        }
        ends.forEach(([start], other) => {
          if (other !== at && Math.hypot(start.x - ends[at][1].x, start.y - ends[at][1].y) < 8) {
            faults.push(`picture ${number}: arrow ${other} begins where ${at} ends`);
          }
        });
      });
      return faults;
    }),
  );
}

test("no arrow goes through a box, and none begins where another ends", async () => {
  for (const report of ["reads.html", "anomalies.html", "cases.html", "ring12.html", "ring120.html", "sessions.html"]) {
    await withReport(report, {}, async (page) => assert.deepEqual(await faultsOfPictures(page), [], report));
  }
});

test("moved boxes keep their arrows apart", async () => {
  await withReport("anomalies.html", {}, async (page) => {
    const svg = page.locator("article[data-kind=LostUpdate] svg.picture:not(.all)");
    for (const node of await svg.locator(".node").all()) {
      await node.focus();
      for (const key of ["ArrowRight", "ArrowDown", "ArrowDown"]) await page.keyboard.press(key);
    }
    const meeting = (await faultsOfPictures(page)).filter((fault) => fault.includes("begins where"));
    assert.deepEqual(meeting, []);
  });
});

test("graphs are taken along as SVG, PNG and DOT", async () => {
  await withReport("anomalies.html", {}, async (page) => {
    const graph = page.locator("article[data-kind=LostUpdate] .graph");
    for (const [form, begins] of [["SVG", "<svg"], ["PNG", "\x89PNG"], ["DOT", "digraph"]]) {
      const waiting = page.waitForEvent("download");
      await graph.getByRole("button", { name: form }).click();
      const download = await waiting;
      const bytes = readFileSync(await download.path());
      assert.equal(bytes.subarray(0, begins.length).toString("latin1"), begins);
      assert.match(download.suggestedFilename(), /^anomaly-\d+-LostUpdate\.(svg|png|dot)$/);
    }
  });
});

test("a transaction is the same one in words, table, graph and timeline", async () => {
  await withReport("anomalies.html", {}, async (page) => {
    const article = page.locator("article[data-kind=LostUpdate]");
    const name = article.locator(".happened a.txn").first();
    const address = await name.getAttribute("href");
    const canvas = article.locator("canvas");
    const pixels = () => canvas.evaluate((element) => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(() => resolve(element.toDataURL())))));
    const before = await pixels();
    await name.hover();
    for (const place of ["g.node.lit", "tr.lit", "ol.argument a.lit"]) assert.ok((await article.locator(place).count()) > 0, place);
    assert.notEqual(await pixels(), before);
    await name.click();
    const details = page.locator(".details");
    const [panel, link] = [await details.boundingBox(), await name.boundingBox()];
    assert.ok(Math.abs(panel.y - link.y) < 700 && panel.y >= 0, "the details are beside what was clicked");
    assert.equal(new URL(page.url()).hash, address);
    await keep(page, "details");
    assert.deepEqual(await accessibility(page), []);
    await page.keyboard.press("Escape");
    const node = article.locator("svg.picture:not(.all) g.node").first();
    await node.click();
    assert.ok(await details.isVisible());
    await details.locator("a.key").first().click();
    assert.match(await details.locator("h3").textContent(), /^Versions of /);
    assert.match(new URL(page.url()).hash, /^#k\d+$/);
    await page.goto(page.url().replace(/#.*/, address));
    await page.reload();
    await page.waitForSelector("html[data-ready=true]", { state: "attached" });
    assert.equal(await details.locator("h3 bdi").first().textContent(), await name.textContent());
  });
});

test("the timeline stays on the data, and goes from anomaly to anomaly", async () => {
  await withReport("anomalies.html", {}, async (page) => {
    const history = page.locator("#history");
    for (let step = 0; step < 5; step++) await history.getByRole("button", { name: "Zoom out" }).click();
    assert.ok((await coloursOf(history.locator("canvas[tabindex]"))) > 2, "zoomed out");
    await history.getByRole("button", { name: "Next anomaly" }).click();
    const first = await history.locator(".hint").textContent();
    assert.match(first, /^1 of \d+ in time: anomaly \d+/);
    await keep(history, "timeline-anomaly");
    await history.getByRole("button", { name: "Next anomaly" }).click();
    assert.match(await history.locator(".hint").textContent(), /^2 of/);
    await history.getByRole("button", { name: "Previous anomaly" }).click();
    assert.equal(await history.locator(".hint").textContent(), first);
    assert.ok((await coloursOf(history.locator("canvas.strip"), 0)) > 3, "the strip shows when");
  });
});

test("what has no times is drawn as an order", async () => {
  await withReport("ring12.html", {}, async (page) => {
    assert.match(await page.locator("#history .hint").textContent(), /has no times/);
    const canvas = page.locator("#history canvas[tabindex]");
    await canvas.scrollIntoViewIfNeeded();
    // One column of pixels meets one transaction.
    const box = await canvas.boundingBox();
    const told = page.locator("#history .told");
    const met = new Set();
    for (let row = 0; row < 12; row++) {
      await page.mouse.move(box.x + 150, box.y + 30 + row * 26 + 13);
      met.add(await told.textContent());
    }
    met.delete("Point at a bar to see what it read and from whom; click for details.");
    assert.ok(met.size <= 1, [...met].join("; "));
    await keep(page.locator("#history"), "untimed");
  });
});

test("on paper, timelines are as wide as the paper", async () => {
  await withReport("anomalies.html", {}, async (page) => {
    await page.emulateMedia({ media: "print" });
    const canvas = page.locator("article canvas").first();
    const width = await canvas.evaluate((element) => element.getBoundingClientRect().width);
    assert.ok(width > 300 && width <= 700, `${width}`);
    assert.ok((await coloursOf(canvas)) > 2);
  });
});

test("long and foreign texts are told apart and stay in their place", async () => {
  await withReport("long.html", {}, async (page) => {
    const happened = await page.locator("article .happened").first().textContent();
    assert.match(happened, /…x+-one/);
    assert.match(await page.locator("article").first().textContent(), /…x+-two/);
    const hebrew = page.locator("article bdi", { hasText: "שלום" });
    assert.ok((await hebrew.count()) > 0);
    assert.ok((await page.locator("article bdi.long[title$='-one']").count()) > 0);
    const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(overflow <= 0, `${overflow} pixels too wide`);
    const happenedAt = page.locator("article .happened").first();
    await happenedAt.getByRole("button", { name: "more" }).click();
    assert.match(await happenedAt.textContent(), /x{80}-one/);
    await happenedAt.getByRole("button", { name: "less" }).click();
    await page.locator("article a.txn").first().click();
    await page.locator(".details").getByRole("button", { name: "more" }).first().click();
    assert.match(await page.locator(".details").textContent(), /x{80}/);
    await keep(page, "long");
  });
});

test("the levels can be read on a telephone", async () => {
  await withReport("satisfied.html", { viewport: { width: 400, height: 800 } }, async (page) => {
    const svg = page.locator(".lattice svg:visible");
    const { scale, right } = await svg.evaluate((element) => ({
      scale: element.getBoundingClientRect().width / element.viewBox.baseVal.width,
      right: element.getBoundingClientRect().right,
    }));
    assert.ok(scale > 0.95 && right <= 400, `${scale} ${right}`);
    await keep(page, "lattice-narrow");
  });
});

test("what befell a run is a band on the timeline", async () => {
  await withReport("run.html", {}, async (page) => {
    const history = page.locator("#history");
    const counted = () => history.locator("canvas[tabindex]").evaluate((element) => {
      const probe = document.body.appendChild(document.createElement("i"));
      probe.style.color = "var(--open-paper)";
      const [red, green, blue] = getComputedStyle(probe).color.match(/\d+/g).map(Number);
      probe.remove();
      const { data } = element.getContext("2d").getImageData(0, 30, element.width, element.height - 30);
      let count = 0;
      for (let at = 0; at < data.length; at += 4) count += data[at] === red && data[at + 1] === green && data[at + 2] === blue;
      return count;
    });
    assert.ok((await counted()) > 500);
    await keep(history, "bands");
  });
});

test("several histories have a table, a matrix, and each its own part", async () => {
  await withReport("several.html", {}, async (page) => {
    assert.match(await page.locator("h1").textContent(), /^4 histories: \d violated, 1 satisfied/);
    const rows = page.locator(".index tr");
    assert.equal(await rows.count(), 5);
    const cell = page.locator(".matrix tr", { hasText: "reads.jsonl" }).locator("td.violated").first();
    assert.ok(Number(await cell.textContent()) > 0);
    const link = page.locator(".index a", { hasText: "anomalies.jsonl" });
    await link.click();
    const part = page.locator(await link.getAttribute("href"));
    assert.ok(await part.locator("article svg.picture:not(.all)").first().isVisible());
    assert.ok(await part.locator(".verdicts").isVisible());
    // Each part is what a page on its history is: timeline, search, links and filter.
    await page.waitForSelector("#h1[data-ready=true]");
    assert.ok((await coloursOf(part.locator(".history canvas[tabindex]"))) > 2);
    assert.match(await part.locator(".count").textContent(), /^\d+ of \d+ shown/);
    const name = part.locator("article .happened a.txn").first();
    await name.hover();
    assert.ok((await part.locator("g.node.lit").count()) > 0);
    await name.click();
    assert.ok(await part.locator(".details").isVisible());
    const address = new URL(page.url()).hash;
    assert.match(address, /^#h1-t\d+$/);
    await keep(page, "several-details");
    await page.keyboard.press("Escape");
    await part.getByRole("searchbox").fill("T393");
    await part.locator(".results").getByRole("link", { name: "T393", exact: true }).click();
    assert.match(await part.locator(".details h3").textContent(), /^T393,/);
    await page.keyboard.press("Escape");
    // Others have their own, and an address opens the part that it is in.
    await page.locator("#h2 > summary").click();
    await page.waitForSelector("#h2[data-ready=true]");
    await page.locator("#h2").getByRole("searchbox").fill("T3");
    await page.locator("#h2 .results").getByRole("link", { name: "T3", exact: true }).click();
    assert.match(new URL(page.url()).hash, /^#h2-t\d+$/);
    await page.keyboard.press("Escape");
    assert.deepEqual(await accessibility(page), []);
    assert.equal(await page.evaluate(() => window.hacked), undefined);
    await keep(page, "several");
    const ids = await page.locator("[id]").evaluateAll((all) => all.map((one) => one.id));
    assert.equal(new Set(ids).size, ids.length, "ids are unique");
  });
});

test("an address opens the part of its history", async () => {
  await withReport("several.html#h2-t1", {}, async (page) => {
    assert.ok(await page.locator("#h2 .details").isVisible());
    assert.match(await page.locator("#h2 .details h3").textContent(), /^T2, session shop/);
    assert.ok(!(await page.locator("#h1 article").first().isVisible()));
  });
});

test("the smallest part comes first, with who did what when, and statements to paste", async () => {
  await withReport("shrunk.html", { permissions: ["clipboard-read", "clipboard-write"] }, async (page) => {
    const sections = await page.locator("main > section").evaluateAll((all) => all.map((one) => one.id));
    assert.deepEqual(sections.slice(0, 2), ["summary", "smallest"]);
    const smallest = page.locator("#smallest");
    assert.match(await smallest.locator("p").first().textContent(), /^2 of \d+ transactions are enough/);
    assert.ok((await smallest.locator(".side-by-side td", { hasText: "begins" }).count()) === 2);
    assert.match(await smallest.locator("pre.terminals").textContent(), /BEGIN ISOLATION LEVEL REPEATABLE READ;/);
    const link = smallest.locator("a.txn").first();
    await link.click();
    assert.equal(await page.locator(".details h3 bdi").first().textContent(), await link.textContent());
    await page.keyboard.press("Escape");
    await smallest.getByRole("button", { name: "Copy" }).first().click();
    await smallest.getByRole("button", { name: "copied" }).waitFor();
    assert.match(await page.evaluate(() => navigator.clipboard.readText()), /^CREATE TABLE/);
    assert.deepEqual(await accessibility(page), []);
    await keep(smallest, "smallest");
  });
});

test("what one history is found to be stands in the heading", async () => {
  await withReport("anomalies.html", {}, async (page) => {
    assert.match(await page.locator("h1").textContent(), /^anomalies\.jsonl: violates read-atomic/);
  });
});

test("many anomalies are grouped, paged and counted, and all are on the strip", async () => {
  await withReport("many.html", {}, async (page) => {
    assert.match(await page.locator("nav").textContent(), /Anomalies \(120\)/);
    assert.match(await page.locator(".count").textContent(), /^120 of 120 shown/);
    const group = page.locator("details.group");
    assert.equal(await group.count(), 1);
    assert.match(await group.locator("summary").textContent(), /Thin-air read on k: 110/);
    await group.locator("summary").click();
    assert.equal(await group.locator("li:visible").count(), 50);
    await group.getByRole("button", { name: /^Show more of the 60/ }).click();
    assert.equal(await group.locator("li:visible").count(), 100);
    await page.goto(`${page.url().replace(/#.*/, "")}#a120`);
    assert.ok(await page.locator("#a120").isVisible(), "an address opens what is folded");
    // Marks from one end of the strip to the other.
    const marked = await page.locator("canvas.strip").evaluate((canvas) => {
      const { data } = canvas.getContext("2d").getImageData(0, 4, canvas.width, 1);
      const tenths = new Set();
      for (let x = 0; x < canvas.width; x++) if (data[4 * x] > 120 && data[4 * x + 1] < 60) tenths.add(Math.floor((10 * x) / canvas.width));
      return tenths.size;
    });
    assert.ok(marked >= 9, `${marked} tenths of the strip are marked`);
  });
});

test("a card is copied as Markdown", async () => {
  await withReport("anomalies.html", { permissions: ["clipboard-read", "clipboard-write"] }, async (page) => {
    const article = page.locator("article[data-kind=LostUpdate]");
    await article.getByRole("button", { name: "Copy as Markdown" }).click();
    await article.getByRole("button", { name: "copied" }).waitFor();
    const text = await page.evaluate(() => navigator.clipboard.readText());
    assert.match(text, /Lost update/);
    assert.match(text, /T393/);
  });
});
