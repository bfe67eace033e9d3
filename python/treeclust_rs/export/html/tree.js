
"use strict";
// Everything that a table, a model or a user wrote is set as text, never as markup.
(() => {
const data = JSON.parse(document.getElementById("data").textContent);
const { nodes, columns, clusters } = data;
const WIDTH = 216, HEIGHT = 62, DOWN = 70, ACROSS = 266;
// Larger trees begin with their largest branches open, about this many boxes at the right.
const SHOWN = 24;
const byId = (id) => document.getElementById(id);

function element(tag, content = "", attributes = {}) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  for (const part of [content].flat()) made.append(part);
  return made;
}
function drawn(tag, attributes, text = "") {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.textContent = text;
  return made;
}
function swatch(code) {
  const made = element("span", "", { class: "swatch", "aria-hidden": "true" });
  made.style.background = clusters[code].color;
  return made;
}
const plural = (n, word) => `${n.toLocaleString("en")} ${word}${n === 1 ? "" : "s"}`;

// ---- the tree -----------------------------------------------------------------------------

const order = [];  // from the left: parents before children
for (const stack = [0]; stack.length;) {
  const id = stack.pop(), node = nodes[id];
  order.push(id);
  if (node.left) {
    stack.push(node.left + 1, node.left);
    for (const child of [node.left, node.left + 1]) {
      nodes[child].parent = id;
      nodes[child].branch = child === node.left ? "yes" : "no";
      nodes[child].depth = (node.depth || 0) + 1;
    }
  }
}
nodes[0].depth = 0;
// Rows of the leaves below, by cluster; children come after their parents.
for (let id = nodes.length - 1; id >= 0; id--) {
  const node = nodes[id];
  node.counts = new Map();
  const add = (code, rows) => node.counts.set(code, (node.counts.get(code) || 0) + rows);
  if (node.left) {
    for (const child of [nodes[node.left], nodes[node.left + 1]]) child.counts.forEach((rows, code) => add(code, rows));
  } else add(node.cluster, node.rows);
  node.open = true;
}
const largest = (counts) => [...counts].filter(([, rows]) => rows).sort((a, b) => b[1] - a[1] || a[0] - b[0]);
const title = (node) => (node.left ? `${node.yes}?` : `Cluster ${clusters[node.cluster].name}`);
const size = (node) => `${plural(node.rows, "row")} (${node.share})`;

function tipOf(node) {
  const lines = [title(node), size(node)];
  for (const [place, [code]] of largest(node.counts).slice(0, 3).entries()) {
    if (node.left) lines.push(`cluster ${clusters[code].name}: ${node.shares[place]}`);
  }
  for (const [name, value] of node.facts) lines.push(`${name}: ${value}`);
  if (node.bars) lines.push(node.bars.about);
  return lines.join("\n");
}

const tree = byId("tree"), edges = byId("edges"), view = byId("view"), world = byId("world"), tip = byId("tip");
for (const id of order) {
  const node = nodes[id];
  node.box = element("div", [
    element("div", title(node), { class: "first" }),
    element("div", size(node), { class: "second" }),
  ], {
    role: "treeitem", id: `node-${id}`, tabindex: id ? -1 : 0, "aria-level": node.depth + 1,
    "aria-posinset": node.branch === "no" ? 2 : 1, "aria-setsize": id ? 2 : 1, "aria-selected": "false",
    "aria-label": `${node.branch ? `${node.branch}: ` : ""}${title(node)} ${size(node)}`,
  });
  if (node.left) {
    node.toggle = element("span", "", { class: "toggle", "aria-hidden": "true" });
    const share = element("div", "", { class: "share", "aria-hidden": "true" });
    for (const [code, rows] of [...node.counts].sort((a, b) => a[0] - b[0])) {
      const part = element("span");
      part.style.cssText = `flex:${rows} 0 0;background:${clusters[code].color}`;
      share.append(part);
    }
    node.box.append(node.toggle, share);
  } else {
    node.box.classList.add("leaf");
    node.box.style.setProperty("--own", clusters[node.cluster].color);
  }
  tree.append(node.box);
  if (id) {
    node.edge = drawn("path", {});
    node.word = drawn("text", {}, node.branch);
    edges.append(node.edge, node.word);
  }
}

let zoom = 1, extent = [WIDTH, HEIGHT];
const isShown = (node) => !node.box.hidden;
const shownIds = () => order.filter((id) => isShown(nodes[id]));

function layOut() {
  let rows = 0, depth = 0;
  for (const id of order) {
    const node = nodes[id], parent = nodes[node.parent];
    node.box.hidden = Boolean(parent) && (parent.box.hidden || !parent.open);
    if (node.box.hidden) continue;
    node.x = node.depth * ACROSS;
    depth = Math.max(depth, node.depth);
    if (!node.left || !node.open) node.y = DOWN * rows++;
  }
  for (let id = nodes.length - 1; id >= 0; id--) {
    const node = nodes[id];
    if (isShown(node) && node.left && node.open) node.y = (nodes[node.left].y + nodes[node.left + 1].y) / 2;
  }
  for (const node of nodes) {
    if (node.edge) {
      node.edge.style.display = node.word.style.display = isShown(node) ? "" : "none";
    }
    if (node.left) {
      node.box.setAttribute("aria-expanded", node.open);
      node.toggle.textContent = node.open ? "▾" : "▸";
    }
    if (!isShown(node)) continue;
    node.box.style.left = `${node.x}px`;
    node.box.style.top = `${node.y}px`;
    if (!node.edge) continue;
    const from = nodes[node.parent], x = from.x + WIDTH, bend = x + (node.x - x) / 2;
    const y = from.y + HEIGHT / 2, end = node.y + HEIGHT / 2;
    node.edge.setAttribute("d", `M${x} ${y}C${bend} ${y} ${bend} ${end} ${node.x} ${end}`);
    node.word.setAttribute("x", node.x - 6);
    node.word.setAttribute("y", end + (node.branch === "yes" ? -5 : 13));
  }
  extent = [depth * ACROSS + WIDTH, Math.max(rows * DOWN - DOWN + HEIGHT, HEIGHT)];
  scale(zoom);
}

// Zooms about a point of the view, its middle unless another is given.
function scale(wanted, x = view.clientWidth / 2, y = view.clientHeight / 2) {
  const before = zoom;
  zoom = Math.min(2.5, Math.max(0.02, wanted));
  const left = (view.scrollLeft + x) * zoom / before - x, top = (view.scrollTop + y) * zoom / before - y;
  world.style.transform = `scale(${zoom})`;
  world.classList.toggle("far", zoom < 0.3);  // too small to read: colours alone
  byId("size").style.width = `${extent[0] * zoom}px`;
  byId("size").style.height = `${extent[1] * zoom}px`;
  if (zoom !== before) view.scrollTo(left, top);
}
function fit(least) {
  const whole = Math.min((view.clientWidth - 40) / extent[0], (view.clientHeight - 40) / extent[1], 1);
  scale(Math.max(whole, least));
  const root = nodes[0];
  view.scrollTo(0, (root.y + HEIGHT / 2) * zoom + 16 - view.clientHeight / 2);
}
function openAll(open) {
  for (const node of nodes) node.open = open;
  layOut();
  if (!isShown(nodes[current])) focusOn(0, false);
}
// Opens the nodes above, so that the node is seen.
function uncover(id) {
  for (let at = nodes[id].parent; at !== undefined; at = nodes[at].parent) nodes[at].open = true;
}
function toggle(id) {
  nodes[id].open = !nodes[id].open;
  layOut();
  if (!isShown(nodes[current])) focusOn(id, false);
}

let current = 0;
function reveal(id, place) {
  if (place === "center" && zoom < 0.5) scale(0.8);
  nodes[id].box.scrollIntoView({ block: place, inline: place });
}
function focusOn(id, moveFocus = true) {
  nodes[current].box.tabIndex = -1;
  current = id;
  nodes[id].box.tabIndex = 0;
  if (moveFocus) {
    nodes[id].box.focus({ preventScroll: true });
    reveal(id, "nearest");
  }
}
let selected = 0;
function select(id) {
  nodes[selected].box.setAttribute("aria-selected", "false");
  selected = id;
  nodes[id].box.setAttribute("aria-selected", "true");
  show(nodes[id], id);
}
function goTo(id) {
  uncover(id);
  layOut();
  select(id);
  reveal(id, "center");
  focusOn(id);
}

const idOf = (target) => {
  const box = target.closest("[role=treeitem]");
  return box ? Number(box.id.slice(5)) : null;
};
tree.addEventListener("click", (event) => {
  const id = idOf(event.target);
  if (id === null) return;
  if (event.target.classList.contains("toggle")) return toggle(id);
  focusOn(id);
  select(id);
});
tree.addEventListener("dblclick", (event) => {
  const id = idOf(event.target);
  if (id !== null && nodes[id].left && !event.target.classList.contains("toggle")) toggle(id);
});
tree.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const node = nodes[current], shown = shownIds(), at = shown.indexOf(current);
  const keys = {
    ArrowDown: () => focusOn(shown[Math.min(at + 1, shown.length - 1)]),
    ArrowUp: () => focusOn(shown[Math.max(at - 1, 0)]),
    Home: () => focusOn(shown[0]),
    End: () => focusOn(shown[shown.length - 1]),
    ArrowRight: () => node.left && (node.open ? focusOn(node.left) : toggle(current)),
    ArrowLeft: () => {
      if (node.left && node.open) toggle(current);
      else if (node.parent !== undefined) focusOn(node.parent);
    },
    Enter: () => select(current),
    " ": () => select(current),
    "+": () => scale(zoom * 1.25),
    "-": () => scale(zoom / 1.25),
    0: () => fit(0),
    Escape: () => { tip.hidden = true; },
  };
  if (!keys[event.key]) return;
  event.preventDefault();
  keys[event.key]();
});

function showTip(event) {
  const id = idOf(event.target);
  if (id === null) return;
  tip.textContent = tipOf(nodes[id]);
  tip.hidden = false;
  const box = nodes[id].box.getBoundingClientRect(), own = tip.getBoundingClientRect();
  const below = box.bottom + 6 + own.height < innerHeight;
  tip.style.left = `${Math.max(4, Math.min(box.left, innerWidth - own.width - 4))}px`;
  tip.style.top = `${Math.max(4, below ? box.bottom + 6 : box.top - own.height - 6)}px`;
}
const hideTip = () => { tip.hidden = true; };
tree.addEventListener("pointerover", showTip);
tree.addEventListener("focusin", (event) => event.target.matches(":focus-visible") && showTip(event));
tree.addEventListener("pointerout", hideTip);
tree.addEventListener("focusout", hideTip);
view.addEventListener("scroll", hideTip);

view.addEventListener("wheel", (event) => {
  if (!event.ctrlKey && !event.metaKey) return;
  event.preventDefault();
  const frame = view.getBoundingClientRect();
  scale(zoom * Math.exp(-event.deltaY / 300), event.clientX - frame.left, event.clientY - frame.top);
}, { passive: false });
view.addEventListener("pointerdown", (event) => {
  if (event.pointerType !== "mouse" || event.button !== 0 || idOf(event.target) !== null) return;
  const [x, y, left, top] = [event.clientX, event.clientY, view.scrollLeft, view.scrollTop];
  const move = (moved) => view.scrollTo(left - moved.clientX + x, top - moved.clientY + y);
  const end = () => {
    view.classList.remove("dragged");
    removeEventListener("pointermove", move);
  };
  view.classList.add("dragged");
  addEventListener("pointermove", move);
  addEventListener("pointerup", end, { once: true });
});

byId("expand").addEventListener("click", () => openAll(true));
byId("collapse").addEventListener("click", () => openAll(false));
byId("in").addEventListener("click", () => scale(zoom * 1.25));
byId("out").addEventListener("click", () => scale(zoom / 1.25));
byId("fit").addEventListener("click", () => fit(0));

const PAPER = 680;  // pixels across
let onScreen = 1;
addEventListener("beforeprint", () => {
  onScreen = zoom;
  scale(Math.min(1, PAPER / extent[0]));
});
addEventListener("afterprint", () => scale(onScreen));

const dark = matchMedia("(prefers-color-scheme: dark)");
function setTheme(isDark) {
  document.documentElement.dataset.theme = isDark ? "dark" : "light";
  byId("theme").textContent = isDark ? "Light" : "Dark";
}
dark.addEventListener("change", () => setTheme(dark.matches));
byId("theme").addEventListener("click", () => setTheme(document.documentElement.dataset.theme !== "dark"));
setTheme(dark.matches);

// ---- search -------------------------------------------------------------------------------

let matches = [], next = 0;
function mark(ids) {
  for (const id of matches) nodes[id].box.classList.remove("match");
  matches = ids;
  next = 0;
  for (const id of ids) {
    nodes[id].box.classList.add("match");
    uncover(id);
  }
  layOut();
}
byId("query").addEventListener("input", () => {
  const words = byId("query").value.trim().toLowerCase();
  mark(words ? order.filter((id) => nodes[id].find.some((text) => text.toLowerCase().includes(words))) : []);
  byId("found").textContent = words ? plural(matches.length, "node") : "";
  if (matches.length) reveal(matches[0], "nearest");
});
byId("search").addEventListener("submit", (event) => {
  event.preventDefault();
  if (!matches.length) return;
  const id = matches[next++ % matches.length];
  byId("found").textContent = `${(next - 1) % matches.length + 1} of ${matches.length}`;
  uncover(id);
  layOut();
  select(id);
  focusOn(id, false);
  reveal(id, "center");
});

// ---- the panel ----------------------------------------------------------------------------

function show(node, id) {
  const facts = [["Rows", size(node)], ["Depth", String(node.depth)], ...node.facts];
  const list = element("dl", facts.flatMap(([name, value]) => [element("dt", name), element("dd", value)]));
  const parts = [element("h3", node.left ? title(node) : [swatch(node.cluster), title(node)])];
  if (node.branch) parts.push(element("p", `${node.branch}: ${node.branch === "yes" ? nodes[node.parent].yes : nodes[node.parent].no}`));
  if (node.rule) parts.push(element("p", node.rule));
  parts.push(list);
  if (node.left) {
    const rows = largest(node.counts);
    parts.push(element("ul", rows.slice(0, node.shares.length).map(([code, n], place) =>
      element("li", [swatch(code), `${clusters[code].name}: ${plural(n, "row")} (${node.shares[place]})`]))));
    const more = rows.length - node.shares.length;
    if (more) parts.push(element("p", `and ${plural(more, "more cluster")}`, { class: "more" }));
  }
  if (node.bars) parts.push(...chart(node));
  byId("node-title").textContent = `Node ${id}`;
  byId("details").replaceChildren(...parts);
}

// Rows by the value of the tested column, stacked by cluster; dashed lines where the side changes.
function chart(node) {
  const { bars, about, ends } = node.bars;
  const total = (bar) => bar.counts.reduce((sum, [, n]) => sum + n, 0);
  const wide = 340, high = 108, top = 14, step = wide / bars.length;
  const most = Math.max(1, ...bars.map(total));
  const svg = drawn("svg", { class: "chart", viewBox: `0 0 ${wide} 150`, role: "img", "aria-label": `${about}: rows by value and cluster` });
  bars.forEach((bar, place) => {
    let y = top + high;
    for (const [code, n] of bar.counts) {
      const part = n / most * high;
      y -= part;
      const rectangle = drawn("rect", {
        x: place * step + 1, y, width: Math.max(step - 2, 1), height: part, fill: clusters[code].color,
        "fill-opacity": bar.missing ? 0.6 : 1,
      });
      rectangle.append(drawn("title", {}, `${bar.text}: ${plural(n, "row")} of cluster ${clusters[code].name}`));
      svg.append(rectangle);
    }
    const changes = place && bars[place - 1].side !== bar.side;
    if (changes) svg.append(drawn("line", { class: "cut", x1: place * step, x2: place * step, y1: 0, y2: top + high }));
    if (!place || changes) {
      let end = place;
      while (end < bars.length && bars[end].side === bar.side) end++;
      svg.append(drawn("text", { x: (place + end) / 2 * step, y: 10, "text-anchor": "middle" }, bar.side ? "no" : "yes"));
    }
  });
  svg.append(drawn("line", { class: "axis", x1: 0, x2: wide, y1: top + high, y2: top + high }));
  ends.forEach((text, end) => svg.append(drawn("text", { x: end * wide, y: 138, "text-anchor": end ? "end" : "start" }, text)));
  const codes = [...new Set(bars.flatMap((bar) => bar.counts.map(([code]) => code)))].sort((a, b) => a - b);
  const table = element("table", [
    element("tr", [element("th", about, { scope: "col" }), ...codes.map((code) => element("th", [swatch(code), clusters[code].name], { scope: "col" }))]),
    ...bars.map((bar) => element("tr", [
      element("th", bar.text, { scope: "row" }),
      ...codes.map((code) => element("td", String(new Map(bar.counts).get(code) || 0), { class: "number" })),
    ])),
  ]);
  return [element("h3", about), svg, element("details", [element("summary", "The counts as a table"), table])];
}

clusters.forEach((cluster, code) => {
  const button = element("button", [swatch(code), `Cluster ${cluster.name}`], { type: "button", class: "rule" });
  button.addEventListener("click", () => mark(order.filter((id) => nodes[id].cluster === code)));
  const card = element("article", [
    element("h3", button), element("p", cluster.size),
  ], { class: "card" });
  card.style.setProperty("--own", cluster.color);
  const leaves = order.filter((id) => nodes[id].cluster === code).sort((a, b) => nodes[b].rows - nodes[a].rows);
  const line = (id) => {
    const rule = element("button", nodes[id].rule, { type: "button", class: "rule" });
    rule.addEventListener("click", () => goTo(id));
    return element("li", leaves.length > 1 ? [rule, ` (${plural(nodes[id].rows, "row")})`] : rule);
  };
  card.append(element("ul", leaves.slice(0, 4).map(line)));
  if (leaves.length > 4) {
    card.append(element("details", [element("summary", plural(leaves.length - 4, "more rule")), element("ul", leaves.slice(4).map(line))]));
  }
  if (cluster.contrasts.length) {
    card.append(element("table", [
      element("tr", ["apart by", "here", "the rest"].map((text) => element("th", text, { scope: "col" }))),
      ...cluster.contrasts.map((row) => element("tr", row.map((text) => element("td", text)))),
    ]));
  }
  byId("cards").append(card);
});

// ---- tracing a row ------------------------------------------------------------------------

// Where a row goes: cells by column, numbers as the model compares them (levels their code, times
// microseconds), null where missing, undefined where not known yet. Ends at a leaf, or at the first
// node whose answer is not known.
function wayOf(nodes, takesMissing, cells) {
  const way = [0];
  for (let id = 0; nodes[id].left;) {
    const node = nodes[id], cell = cells[node.column];
    let left;
    if (node.terms) {
      let sum = node.bias;
      for (const [column, weight] of node.terms) {
        if (cells[column] === undefined || cells[column] === null) return way;
        sum += weight * cells[column];
      }
      left = sum < 0;
    } else if (cell === undefined || (cell === null && !takesMissing)) return way;
    else if (cell === null) left = node.missingLeft;
    else if (node.codes) left = node.codes.includes(cell);
    else if (node.threshold !== undefined) left = cell <= node.threshold;
    else left = node.between ? node.between[0] <= cell && cell <= node.between[1] : false;
    id = node.left + (left ? 0 : 1);
    way.push(id);
  }
  return way;
}

const DAY = 86400e6, UNITS = { d: DAY, h: 3600e6, m: 60e6, s: 1e6, us: 1 };
// Microseconds since 1970 of a time as its zone has it.
function inZone(time, { zone, offset: fixed }) {
  if (fixed !== undefined) return time - fixed;
  if (!zone) return time;
  const parts = new Intl.DateTimeFormat("en-GB", {
    timeZone: zone, hourCycle: "h23", year: "numeric", month: "numeric", day: "numeric",
    hour: "numeric", minute: "numeric", second: "numeric",
  });
  const offset = (at) => {
    const read = Object.fromEntries(parts.formatToParts(new Date(at / 1000)).map((part) => [part.type, Number(part.value)]));
    const local = Date.UTC(read.year, read.month - 1, read.day, read.hour, read.minute, read.second);
    return (local - Math.floor(at / 1e6) * 1000) * 1000;
  };
  return time - offset(time - offset(time));
}
// The number that the model compares; null: missing; undefined: nothing given; NaN: not readable.
function read(column, text) {
  const given = text.trim();
  if (!given) return undefined;
  if (column.levels) return given === "missing" || given === "other" ? null : Number(given);
  if (column.kind === "duration") {
    const parts = [...given.matchAll(/(\d+(?:\.\d+)?) *(us|[dhms]) */g)];
    const length = parts.reduce((sum, [, n, unit]) => sum + n * UNITS[unit], 0);
    const isWhole = parts.map(([part]) => part).join("") === given.replace(/^-\s*/, "");
    return isWhole ? (given.startsWith("-") ? -length : length) : NaN;
  }
  if (column.kind === "number") return /^[-+\d.eE]+$/.test(given) ? Number(given) : NaN;
  const found = /^([-+]?\d{4,6})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,6}))?)?)?$/.exec(given);
  if (!found) return NaN;
  const [year, month, day, hour, minute, second] = found.slice(1, 7).map((part) => Number(part || 0));
  const micro = Number((found[7] || "").padEnd(6, "0"));
  const start = new Date(0);
  start.setUTCFullYear(year, month - 1, day);
  const time = start.getTime() * 1000 + hour * UNITS.h + minute * UNITS.m + second * 1e6 + micro;
  return inZone(time, column);
}

const fields = columns.map((column, place) => {
  const id = `value-${place}`;
  let input;
  if (column.levels) {
    input = element("select", [
      element("option", "", { value: "" }),
      ...column.levels.map((level, code) => element("option", level, { value: String(code) })),
    ]);
    if (data.takesMissing) {
      if (column.kind === "levels") input.append(element("option", "(another level)", { value: "other" }));
      input.append(element("option", "(missing)", { value: "missing" }));
    }
  } else {
    const type = column.kind === "date" ? "date" : column.kind.startsWith("datetime") ? "datetime-local" : "text";
    input = element("input", "", { type, autocomplete: "off" });
    if (type === "datetime-local") input.step = "1";
    if (column.kind === "number") input.inputMode = "decimal";
    if (column.kind === "duration") input.placeholder = "3d 4h 5m";
    else if (column.typical) input.placeholder = `e.g. ${column.typical}`;
  }
  input.id = id;
  const label = element("label", column.zone ? `${column.name} (${column.zone})` : column.name, { for: id });
  const missing = element("input", "", { type: "checkbox" });
  const gap = column.levels || !data.takesMissing ? element("span") : element("label", [missing, " missing"], { class: "gap" });
  missing.setAttribute("aria-label", `${column.name} is missing`);
  byId("trace").append(label, input, gap);
  return { input, missing };
});
const clear = element("button", "Clear", { type: "reset" });
byId("trace").append(clear);

function trace() {
  const cells = fields.map(({ input, missing }, place) => {
    input.disabled = missing.checked;
    const value = missing.checked ? null : read(columns[place], input.value);
    const isWrong = Number.isNaN(value);
    input.classList.toggle("wrong", isWrong);
    input.setAttribute("aria-invalid", isWrong);
    return isWrong ? undefined : value;
  });
  const isStarted = cells.some((cell) => cell !== undefined);
  const way = isStarted ? wayOf(nodes, data.takesMissing, cells) : [];
  for (const node of nodes) {
    for (const part of [node.box, node.edge, node.word]) part?.classList.remove("on");
  }
  for (const { input } of fields) input.classList.remove("wanted");
  if (!isStarted) return byId("way").replaceChildren();
  const last = way[way.length - 1], end = nodes[last];
  uncover(last);
  layOut();
  for (const id of way) for (const part of [nodes[id].box, nodes[id].edge, nodes[id].word]) part?.classList.add("on");
  reveal(last, "nearest");
  const steps = way.slice(1).map((id) => element("li", nodes[id].branch === "yes" ? nodes[nodes[id].parent].yes : nodes[nodes[id].parent].no));
  let result;
  if (end.left) {
    const asked = (end.terms ? end.terms.map(([column]) => column) : [end.column]).filter((column) => typeof cells[column] !== "number");
    for (const column of asked) fields[column].input.classList.add("wanted");
    result = element("p", `Next: ${asked.map((column) => columns[column].name).join(", ")}`);
  } else {
    result = element("p", [swatch(end.cluster), element("strong", `Cluster ${clusters[end.cluster].name}`)]);
    select(last);
  }
  byId("way").replaceChildren(result, element("ol", steps));
}
byId("trace").addEventListener("input", trace);
byId("trace").addEventListener("submit", (event) => event.preventDefault());
byId("trace").addEventListener("reset", () => setTimeout(trace));

// ---- the start ----------------------------------------------------------------------------

const nLeaves = (nodes.length + 1) / 2;
if (nLeaves > 1.5 * SHOWN) {
  for (const node of nodes) node.open = false;
  const waiting = [0];
  for (let n = 1; n < SHOWN && waiting.length; n++) {
    waiting.sort((a, b) => nodes[a].rows - nodes[b].rows);
    const id = waiting.pop();
    nodes[id].open = true;
    for (const child of [nodes[id].left, nodes[id].left + 1]) if (nodes[child].left) waiting.push(child);
  }
}
layOut();
fit(0.7);
select(0);
window.treeclust = { wayOf, read, columns };
})();
