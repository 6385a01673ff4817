// Makes the picture of an anomaly something to take apart: boxes can be moved, the picture enlarged,
// and inferred arrows opened into the reasons behind them.

const STEP = 16;

/** Where the line between two boxes leaves them, as a curve that looks like the drawn ones. */
function curveBetween(a, b) {
  const middle = (box) => ({ x: box.x + box.w / 2, y: box.y + box.h / 2 });
  const [from, to] = [middle(a), middle(b)];
  const [dx, dy] = [to.x - from.x, to.y - from.y];
  const isFlat = Math.abs(dx) / (a.w + b.w) > Math.abs(dy) / (a.h + b.h);
  const sign = isFlat ? Math.sign(dx) || 1 : Math.sign(dy) || 1;
  const port = (box, centre, way) =>
    isFlat
      ? { x: centre.x + (way * box.w) / 2, y: centre.y }
      : { x: centre.x, y: centre.y + (way * box.h) / 2 };
  const [start, end] = [port(a, from, sign), port(b, to, -sign)];
  const reach = Math.max(24, Math.hypot(end.x - start.x, end.y - start.y) * 0.4);
  const away = (point, way) =>
    isFlat ? { x: point.x + way * reach, y: point.y } : { x: point.x, y: point.y + way * reach };
  return [start, away(start, sign), away(end, -sign), end];
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
      parts: ["path.line", "path.head", "rect.tag", "text.tag"].map((part) => element.querySelector(part)),
    }));
    svg.setAttribute("role", "group");
    this.nodes.forEach((node, at) => this.prepareNode(node, at));
    this.links.forEach((link, at) => this.prepareLink(link, at));
    svg.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    svg.addEventListener("pointerdown", (event) => this.grab(event, null));
    svg.addEventListener("pointermove", (event) => this.drag(event));
    svg.addEventListener("pointerup", () => (this.held = null));
  }

  prepareNode({ element }, at) {
    const texts = [...element.querySelectorAll("text")].map((text) => text.textContent);
    element.setAttribute("tabindex", "0");
    element.setAttribute("role", "img");
    element.setAttribute("aria-label", `${texts[0]}: ${texts.slice(1).join(", ") || "no operations"}`);
    element.addEventListener("pointerdown", (event) => this.grab(event, at));
    element.addEventListener("keydown", (event) => {
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
    this.held = { node, x: event.clientX, y: event.clientY };
  }

  drag(event) {
    if (!this.held) return;
    const scale = this.scale();
    const [dx, dy] = [(event.clientX - this.held.x) * scale, (event.clientY - this.held.y) * scale];
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
    const [a, b, c, d] = curveBetween(box(this.nodes[link.from]), box(this.nodes[link.to]));
    const [line, head, frame, text] = link.parts;
    line.setAttribute("d", `M${a.x} ${a.y}C${b.x} ${b.y} ${c.x} ${c.y} ${d.x} ${d.y}`);
    head.setAttribute("d", headOf(c, d));
    // Arrows between the same two boxes keep their labels apart.
    const twins = this.links.filter((other) => new Set([other.from, other.to, link.from, link.to]).size === 2);
    const share = (twins.indexOf(link) + 1) / (twins.length + 1);
    const t = link.from < link.to ? share : 1 - share;
    const u = 1 - t;
    const mix = (k) => u ** 3 * a[k] + 3 * u * u * t * b[k] + 3 * u * t * t * c[k] + t ** 3 * d[k];
    const [x, y] = [mix("x"), mix("y")];
    frame.setAttribute("x", x - frame.getAttribute("width") / 2);
    frame.setAttribute("y", y - frame.getAttribute("height") / 2);
    text.setAttribute("x", x);
    text.setAttribute("y", y + 4);
  }
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
    const button = (text, title, act) => {
      const element = document.createElement("button");
      element.type = "button";
      element.textContent = text;
      element.setAttribute("aria-label", title);
      element.addEventListener("click", act);
      tools.append(element);
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
    button("+", "Enlarge the graph", () => this.each((drawing) => drawing.zoom(0.8)));
    button("−", "Shrink the graph", () => this.each((drawing) => drawing.zoom(1.25)));
    button("Reset", "Reset the graph", () => this.each((drawing) => drawing.reset()));
    check("all operations", false, (all) => {
      this.place.classList.toggle("with-all", all);
    });
    if (this.reasons.length > 0) {
      this.allReasons = check("reasons of inferred arrows", true, (all) => {
        this.open = new Set(all ? this.reasons : []);
        this.update();
      });
    }
    this.place.prepend(tools);
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
