// The picture as SVG, and the part of it that is seen.

const svg = document.getElementById("graph");
const tip = document.getElementById("tip");
const view = { x: 0, y: 0, scale: 1 };
const FAR = 0.45;
let picture;
let layer;

function make(name, attributes, ...children) {
  const element = document.createElementNS(svg.namespaceURI, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

/** Lays out what is shown and draws it. */
function draw() {
  picture = pictureOf();
  layer = make("g", {});
  for (const box of picture.groups) layer.append(groupElement(box));
  const drawn = new Map(picture.lines.map((line) => [line.ends.join(" "), line]));
  for (const line of drawn.values()) layer.append(edgeElement(line));
  for (const box of picture.boxes) layer.append(box.node ? nodeElement(box) : closedElement(box));
  const arrow = make("path", { d: "M0 0L8 4L0 8z" });
  const marker = make("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 8, refY: 4, markerWidth: 7, markerHeight: 7, markerUnits: "userSpaceOnUse", orient: "auto" }, arrow);
  svg.replaceChildren(make("defs", {}, marker), layer);
  refresh();
  look();
}

function edgeElement({ points, ends, order }) {
  const [first, ...others] = points;
  const path = others.map((point, at) => {
    if (at === others.length - 1) return `L${point.x} ${point.y}`;
    const next = others[at + 1];
    return `Q${point.x} ${point.y} ${(point.x + next.x) / 2} ${(point.y + next.y) / 2}`;
  });
  const d = first ? `M${first.x} ${first.y}${path.join("")}` : "";
  return make("path", { class: order ? "edge order" : "edge", d, "data-from": ends[0], "data-to": ends[1] });
}

function label(text, x, y, kind) {
  const element = make("text", { class: kind, x, y });
  element.textContent = text;
  return element;
}

function nodeElement({ node, x, y, width, height }) {
  const time = node.steps.length && state.colour === "time" ? duration(stepOf(node).milliseconds) : "";
  const element = make(
    "g",
    { class: "node", "data-node": node.index, role: "button", tabindex: -1, "aria-label": `${node.op} ${node.name}, ${node.place}` },
    make("rect", { x: x - width / 2, y: y - height / 2, width, height, rx: 6 }),
    label(node.op.length > 22 ? `${node.op.slice(0, 21)}…` : node.op, x - width / 2 + 9, y - 3, "kind"),
    label(short(node.name, time ? 15 : 26), x - width / 2 + 9, y + 12, "name"),
  );
  if (time) {
    const text = label(time, x + width / 2 - 9, y + 12, "name");
    text.setAttribute("text-anchor", "end");
    element.append(text);
  }
  element.style.setProperty("--fill", colourOf(node.place));
  const heat = heatOf(node);
  if (heat !== null) {
    element.classList.add("heated");
    element.style.setProperty("--fill", `color-mix(in oklab, var(--hot) ${Math.round(heat * 100)}%, var(--cold))`);
  }
  if (node.agrees === false && state.colour === "error") element.classList.add("wrong");
  return element;
}

function closedElement({ group, x, y, width, height }) {
  const members = groups.get(group);
  const element = make(
    "g",
    { class: "node closed", "data-group": group, role: "button", tabindex: -1, "aria-label": `group ${group}, ${members.length} nodes, closed` },
    make("rect", { x: x - width / 2, y: y - height / 2, width, height, rx: 8 }),
    label(`▸ ${short(group, 28)}`, x - width / 2 + 10, y - 6, "kind"),
    label(groupText(group), x - width / 2 + 10, y + 14, "name"),
  );
  element.style.setProperty("--fill", colourOf(members[0].place));
  return element;
}

function groupElement({ group, x, y, width, height }) {
  const members = groups.get(group);
  const left = x - width / 2;
  const top = y - height / 2;
  const bar = make(
    "g",
    { class: "bar", "data-group": group, role: "button", tabindex: -1, "aria-label": `group ${group}, ${members.length} nodes, open` },
    make("rect", { x: left, y: top, width, height: BAR - 4, rx: 5 }),
    label(`▾ ${group}: ${groupText(group)}`, left + 8, top + 15, "kind"),
  );
  const element = make("g", { class: "region", "data-box": group }, make("rect", { x: left, y: top, width, height, rx: 8 }), bar);
  element.style.setProperty("--fill", colourOf(members[0].place));
  return element;
}

function groupText(group) {
  const count = groups.get(group).length;
  const time = milliseconds(stepsOf(group));
  return `${count} node${count === 1 ? "" : "s"}${time ? `, ${duration(time)}` : ""}`;
}

function colourOf(place) {
  if (place === "host") return "var(--host)";
  if (GONE.includes(place)) return "var(--gone)";
  const backends = places.filter((one) => one !== "host" && !GONE.includes(one));
  return `var(--place-${backends.indexOf(place) % 8})`;
}

/** What the selection and the search change, without a new layout. */
function refresh() {
  const chosen = state.selected;
  const id = typeof chosen === "number" ? `n${chosen}` : `g${chosen}`;
  for (const element of layer.querySelectorAll(".node, .region")) {
    const own = element.dataset.node === undefined ? element.dataset.group ?? element.dataset.box : Number(element.dataset.node);
    const isSelected = chosen !== null && own === chosen;
    element.classList.toggle("selected", isSelected);
    element.classList.toggle("missed", Boolean(search.found) && !search.found.has(own));
    if (element.matches(".node")) element.setAttribute("tabindex", isSelected ? 0 : -1);
  }
  for (const box of layer.querySelectorAll(".region.missed")) box.classList.remove("missed");
  for (const edge of layer.querySelectorAll(".edge")) {
    edge.classList.toggle("near", chosen !== null && [edge.dataset.from, edge.dataset.to].includes(id));
  }
}

/** Moves the picture to where `view` says. */
function look() {
  layer.setAttribute("transform", `translate(${view.x} ${view.y}) scale(${view.scale})`);
  svg.classList.toggle("far", view.scale < FAR);
  for (const text of layer.querySelectorAll(".region .bar text, .closed .kind")) {
    const isFar = view.scale < FAR && text.closest(".region");
    text.style.fontSize = isFar ? `${Math.min(13 / view.scale, 60)}px` : "";
  }
}

/** Shows all of the picture; of one that would be too small to read, its start. */
function fit(least = 0) {
  const { width, height } = svg.getBoundingClientRect();
  const pad = 24;
  const whole = Math.min((width - 2 * pad) / (picture.width || 1), (height - 2 * pad) / (picture.height || 1), 1.2);
  view.scale = Math.max(whole, least, 0.01);
  const fits = view.scale === whole;
  view.x = (width - picture.width * view.scale) / 2;
  view.y = fits ? (height - picture.height * view.scale) / 2 : pad;
  if (!fits) {
    const top = picture.boxes.reduce((one, other) => (other.y < one.y ? other : one), picture.boxes[0] ?? { x: 0, y: 0 });
    view.x = width / 2 - top.x * view.scale;
  }
  look();
}

/** Makes the picture larger around a point of the window. */
function zoom(factor, at) {
  const { width, height } = svg.getBoundingClientRect();
  const [x, y] = at ?? [width / 2, height / 2];
  const scale = Math.min(Math.max(view.scale * factor, 0.01), 4);
  view.x = x - ((x - view.x) * scale) / view.scale;
  view.y = y - ((y - view.y) * scale) / view.scale;
  view.scale = scale;
  look();
}

/** The box of a node, or of the closed group that it is in. */
function boxOf(index) {
  const group = nodes[index].group;
  return picture.boxes.find((box) => box.node?.index === index) ?? picture.boxes.find((box) => box.group !== undefined && box.group === group);
}

/** Brings a box to the middle, unless it is well in sight. */
function centre(box) {
  const { width, height } = svg.getBoundingClientRect();
  const x = box.x * view.scale + view.x;
  const y = box.y * view.scale + view.y;
  const isSeen = view.scale >= FAR && x > 90 && x < width - 90 && y > 60 && y < height - 60;
  if (isSeen) return;
  view.scale = Math.max(view.scale, 0.9);
  view.x = width / 2 - box.x * view.scale;
  view.y = height / 2 - box.y * view.scale;
  look();
}
