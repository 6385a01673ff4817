// Makes the picture of an anomaly something to take apart: boxes can be moved, the picture enlarged,
// inferred arrows opened into the reasons behind them, and the whole taken along as a file.
import { button } from "./details.js";

const STEP = 16;
/** How far apart the places are where arrows meet a box: closer ones would look like one arrow. */
const PORT_GAP = 11;
/** The sides of a box: where on it, and the direction away from it. */
const SIDES = [[0.5, 1, 0, 1], [0.5, 0, 0, -1], [1, 0.5, 1, 0], [0, 0.5, -1, 0]];

/** A free place on each side of a box, the middle first. */
function portsOf(box, taken) {
  return SIDES.map(([x, y, dx, dy]) => {
    const offsets = [0, 0.25, -0.25, 0.12, -0.12, 0.37, -0.37];
    const places = offsets.map((offset) => ({
      x: box.x + box.w * (dx === 0 ? x + offset : x),
      y: box.y + box.h * (dy === 0 ? y + offset : y),
      dx,
      dy,
    }));
    const isFree = (place) => taken.every((other) => Math.hypot(other.x - place.x, other.y - place.y) >= PORT_GAP);
    return places.find(isFree) ?? places[0];
  });
}

function pointOf([a, b, c, d], t) {
  const u = 1 - t;
  const mix = (k) => u ** 3 * a[k] + 3 * u * u * t * b[k] + 3 * u * t * t * c[k] + t ** 3 * d[k];
  return { x: mix("x"), y: mix("y") };
}

/** A curve from box to box that is short and goes through no other one. */
function curveBetween(from, to, boxes, taken) {
  let [best, least] = [null, Infinity];
  for (const start of portsOf(from, taken)) {
    for (const end of portsOf(to, taken)) {
      const distance = Math.hypot(end.x - start.x, end.y - start.y);
      const reach = Math.min(Math.max(34, distance * 0.45), 150);
      const away = ({ x, y, dx, dy }) => ({ x: x + dx * reach, y: y + dy * reach });
      const curve = [start, away(start), away(end), end];
      let cost = distance;
      for (let piece = 1; piece < 24; piece++) {
        const { x, y } = pointOf(curve, piece / 24);
        cost += boxes.filter((box) => x > box.x && x < box.x + box.w && y > box.y && y < box.y + box.h).length * 500;
      }
      if (cost < least) [best, least] = [curve, cost];
    }
  }
  return best;
}

function headOf(control, end) {
  const length = Math.hypot(end.x - control.x, end.y - control.y) || 1;
  const [dx, dy] = [(end.x - control.x) / length, (end.y - control.y) / length];
  const corner = (side) => `${end.x - dx * 10 - dy * side} ${end.y - dy * 10 + dx * side}`;
  return `M${end.x} ${end.y}L${corner(4.5)}L${corner(-4.5)}Z`;
}

/** One drawing: the relevant operations, or all of them. */
class Drawing {
  constructor(svg, graph) {
    this.svg = svg;
    this.graph = graph;
    this.view = svg.viewBox.baseVal;
    this.home = [this.view.x, this.view.y, this.view.width, this.view.height];
    this.nodes = [...svg.querySelectorAll("[data-node]")].map((element) => {
      const rect = element.querySelector("rect");
      const [x, y, w, h] = ["x", "y", "width", "height"].map((name) => Number(rect.getAttribute(name)));
      return { element, x, y, w, h, dx: 0, dy: 0 };
    });
    this.links = [...svg.querySelectorAll("[data-link]")].map((element) => ({
      element,
      from: Number(element.dataset.from),
      to: Number(element.dataset.to),
      behind: element.dataset.behind === undefined ? null : Number(element.dataset.behind),
      ends: this.endsOf(element),
      parts: ["path.line", "path.head", "rect.tag", "text.tag"].map((part) => element.querySelector(part)),
    }));
    svg.setAttribute("role", "group");
    this.nodes.forEach((node, at) => this.prepareNode(node, at));
    this.links.forEach((link, at) => this.prepareLink(link, at));
    svg.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    svg.addEventListener("pointerdown", (event) => this.grab(event, null));
    svg.addEventListener("pointermove", (event) => this.drag(event));
    svg.addEventListener("pointerup", () => this.drop());
  }

  /** Where an arrow begins and ends. */
  endsOf(element) {
    const numbers = element.querySelector("path.line").getAttribute("d").match(/-?[\d.]+/g).map(Number);
    const [x, y] = numbers.slice(-2);
    return [{ x: numbers[0], y: numbers[1] }, { x, y }];
  }

  prepareNode({ element }, at) {
    const texts = [...element.querySelectorAll("text")].map((text) => text.textContent);
    element.setAttribute("tabindex", "0");
    element.setAttribute("role", element.dataset.t === undefined ? "img" : "button");
    element.setAttribute("aria-label", `${texts[0]}: ${texts.slice(1).join(", ") || "no operations"}`);
    element.addEventListener("pointerdown", (event) => this.grab(event, at));
    element.addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.graph.ask(element);
      const ways = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
      if (!(event.key in ways)) return;
      event.preventDefault();
      const [x, y] = ways[event.key];
      this.moveNode(at, x * STEP, y * STEP);
    });
    element.addEventListener("focus", () => this.graph.tell(element.getAttribute("aria-label")));
  }

  prepareLink({ element }, at) {
    const why = element.querySelector("title").textContent;
    const hasReasons = this.links.some((link) => link.behind === at);
    element.setAttribute("tabindex", "0");
    element.setAttribute("role", hasReasons ? "button" : "img");
    element.setAttribute("aria-label", `${element.querySelector("text.tag").textContent}: ${why}`);
    element.classList.toggle("has-reasons", hasReasons);
    element.addEventListener("focus", () => this.graph.tell(why));
    element.addEventListener("pointerenter", () => this.graph.tell(why));
    element.addEventListener("click", () => hasReasons && this.graph.toggle(at));
    element.addEventListener("keydown", (event) => {
      if (!hasReasons || (event.key !== "Enter" && event.key !== " ")) return;
      event.preventDefault();
      this.graph.toggle(at);
    });
  }

  /** Shows the arrows of the argument, the reasons that are open, and the boxes that these touch. */
  update(open) {
    const visible = new Set();
    this.links.forEach((link, at) => {
      const shown = link.behind === null || (open.has(link.behind) && !this.links[link.behind].element.hasAttribute("hidden"));
      link.element.toggleAttribute("hidden", !shown);
      if (shown) visible.add(link.from).add(link.to);
      if (link.element.classList.contains("has-reasons")) {
        link.element.setAttribute("aria-expanded", String(open.has(at)));
      }
    });
    this.nodes.forEach((node, at) => {
      const isAside = node.element.classList.contains("aside") && !node.element.classList.contains("alone");
      node.element.toggleAttribute("hidden", isAside && !visible.has(at));
    });
  }

  scale() {
    return this.view.width / (this.svg.getBoundingClientRect().width || 1);
  }

  zoom(factor) {
    const [width, height] = [this.view.width * factor, this.view.height * factor];
    this.view.x += (this.view.width - width) / 2;
    this.view.y += (this.view.height - height) / 2;
    [this.view.width, this.view.height] = [width, height];
  }

  reset() {
    [this.view.x, this.view.y, this.view.width, this.view.height] = this.home;
    this.nodes.forEach((node, at) => this.moveNode(at, -node.dx, -node.dy));
  }

  wheel(event) {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    this.zoom(event.deltaY > 0 ? 1.15 : 0.87);
  }

  grab(event, node) {
    event.stopPropagation();
    this.svg.setPointerCapture(event.pointerId);
    this.held = { node, x: event.clientX, y: event.clientY, moved: 0 };
  }

  /** What was not moved was clicked. */
  drop() {
    const { node, moved } = this.held ?? {};
    this.held = null;
    if (typeof node === "number" && moved < 4) this.graph.ask(this.nodes[node].element);
  }

  drag(event) {
    if (!this.held) return;
    const scale = this.scale();
    const [dx, dy] = [(event.clientX - this.held.x) * scale, (event.clientY - this.held.y) * scale];
    this.held.moved += Math.abs(dx) + Math.abs(dy);
    this.held.x = event.clientX;
    this.held.y = event.clientY;
    if (this.held.node === null) {
      this.view.x -= dx;
      this.view.y -= dy;
    } else {
      this.moveNode(this.held.node, dx, dy);
    }
  }

  moveNode(at, dx, dy) {
    if (dx === 0 && dy === 0) return;
    const node = this.nodes[at];
    node.dx += dx;
    node.dy += dy;
    node.element.setAttribute("transform", `translate(${node.dx} ${node.dy})`);
    for (const link of this.links) {
      if (link.from === at || link.to === at) this.route(link);
    }
  }

  route(link) {
    const box = ({ x, y, w, h, dx, dy }) => ({ x: x + dx, y: y + dy, w, h });
    const boxes = this.nodes.filter((node) => !node.element.hasAttribute("hidden")).map(box);
    const taken = this.links.filter((other) => other !== link).flatMap((other) => other.ends);
    const curve = curveBetween(box(this.nodes[link.from]), box(this.nodes[link.to]), boxes, taken);
    const [a, b, c, d] = curve;
    link.ends = [a, d];
    const [line, head, frame, text] = link.parts;
    line.setAttribute("d", `M${a.x} ${a.y}C${b.x} ${b.y} ${c.x} ${c.y} ${d.x} ${d.y}`);
    head.setAttribute("d", headOf(c, d));
    // Arrows between the same two boxes keep their labels apart.
    const twins = this.links.filter((other) => new Set([other.from, other.to, link.from, link.to]).size === 2);
    const share = (twins.indexOf(link) + 1) / (twins.length + 1);
    const { x, y } = pointOf(curve, link.from < link.to ? share : 1 - share);
    frame.setAttribute("x", x - frame.getAttribute("width") / 2);
    frame.setAttribute("y", y - frame.getAttribute("height") / 2);
    text.setAttribute("x", x);
    text.setAttribute("y", y + 4);
  }

  /** The drawing as a file of its own: as it is now, in light colours. */
  file() {
    const copy = this.svg.cloneNode(true);
    copy.querySelectorAll("[hidden]").forEach((element) => element.remove());
    copy.classList.remove("all");
    copy.removeAttribute("style");
    copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
    const style = document.createElementNS("http://www.w3.org/2000/svg", "style");
    style.textContent = document.getElementById("picture-style").textContent;
    const paper = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    const { x, y, width, height } = this.view;
    Object.entries({ x, y, width, height, class: "paper" }).forEach(([name, value]) => paper.setAttribute(name, value));
    copy.prepend(style, paper);
    return new XMLSerializer().serializeToString(copy);
  }

  /** The drawing as an image, twice as large for sharp paper. */
  async image() {
    const url = URL.createObjectURL(new Blob([this.file()], { type: "image/svg+xml" }));
    const image = new Image();
    image.src = url;
    await image.decode();
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [2 * this.svg.width.baseVal.value, 2 * this.svg.height.baseVal.value];
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    URL.revokeObjectURL(url);
    return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
  }
}

/** Hands a file to the reader. */
function download(name, content) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** The picture of an anomaly, in its two drawings. */
export class Graph {
  constructor(place) {
    this.place = place;
    this.drawings = [...place.querySelectorAll("svg.picture")].map((svg) => new Drawing(svg, this));
    const [first] = this.drawings;
    this.reasons = [...new Set(first.links.map((link) => link.behind).filter((behind) => behind !== null))];
    this.open = new Set(this.reasons);
    this.buildTools();
    this.told = document.createElement("p");
    this.told.className = "told";
    this.told.setAttribute("aria-live", "polite");
    this.told.textContent = this.reasons.length > 0
      ? "Point at an arrow to see why it is there; click a dashed one to fold its reasons."
      : "Point at an arrow to see why it is there.";
    place.append(this.told);
    this.update();
  }

  buildTools() {
    const tools = document.createElement("div");
    tools.className = "tools";
    const add = (text, title, act) => {
      const made = button(text, act);
      made.setAttribute("aria-label", title);
      tools.append(made);
    };
    const check = (text, checked, act) => {
      const label = document.createElement("label");
      const input = document.createElement("input");
      input.type = "checkbox";
      input.checked = checked;
      input.addEventListener("change", () => act(input.checked));
      label.append(input, ` ${text}`);
      tools.append(label);
      return input;
    };
    add("+", "Enlarge the graph", () => this.each((drawing) => drawing.zoom(0.8)));
    add("−", "Shrink the graph", () => this.each((drawing) => drawing.zoom(1.25)));
    add("Reset", "Reset the graph", () => this.each((drawing) => drawing.reset()));
    const folded = this.place.dataset.folded ? "all steps and operations" : "all operations";
    check(folded, false, (all) => {
      this.place.classList.toggle("with-all", all);
    });
    if (this.reasons.length > 0) {
      this.allReasons = check("reasons of inferred arrows", true, (all) => {
        this.open = new Set(all ? this.reasons : []);
        this.update();
      });
    }
    const files = document.createElement("span");
    files.className = "files";
    files.textContent = "Download";
    tools.append(files);
    add("SVG", "Download the graph as SVG", () => download(`${this.name()}.svg`, new Blob([this.shown().file()], { type: "image/svg+xml" })));
    add("PNG", "Download the graph as PNG", async () => download(`${this.name()}.png`, await this.shown().image()));
    const dot = this.place.closest("article").querySelector("pre.dot").textContent;
    add("DOT", "Download the graph as DOT", () => download(`${this.name()}.dot`, new Blob([dot], { type: "text/vnd.graphviz" })));
    this.place.prepend(tools);
  }

  /** The drawing that is visible. */
  shown() {
    return this.drawings[this.place.classList.contains("with-all") ? 1 : 0];
  }

  name() {
    const { id, dataset } = this.place.closest("article");
    return `anomaly-${id.slice(1)}-${dataset.kind}`;
  }

  /** Somebody wants to know more of a transaction. */
  ask(element) {
    if (element.dataset.t === undefined) return;
    this.place.dispatchEvent(new CustomEvent("opentransaction", { bubbles: true, detail: element }));
  }

  each(act) {
    this.drawings.forEach(act);
  }

  toggle(link) {
    if (!this.open.delete(link)) this.open.add(link);
    this.update();
  }

  update() {
    this.each((drawing) => drawing.update(this.open));
    if (this.allReasons) this.allReasons.checked = this.reasons.every((link) => this.open.has(link));
  }

  tell(text) {
    this.told.textContent = text;
  }
}
