// What the user does: mouse, keys, search, filters.

const find = (id) => document.getElementById(id);
const search = { found: null, order: [], at: -1 };

/** Selects a node (by index), a group (by name) or nothing (null). */
function select(what, bring = false) {
  state.selected = what;
  if (typeof what === "number" && !isShown(nodes[what])) {
    state.hidden.delete(nodes[what].place);
    find(`show-${nodes[what].place}`).checked = true;
    draw();
  }
  refresh();
  describe();
  const box = typeof what === "number" ? boxOf(what) : picture.boxes.find((one) => what && one.group === what);
  if (bring && box) centre(box);
  if (what !== null) layer.querySelector(".selected")?.focus?.({ preventScroll: true });
}

function toggle(group) {
  if (!state.closed.delete(group)) state.closed.add(group);
  draw();
}

/** Opens or closes groups, the selection where it was if it is still there. */
function setClosed(names) {
  state.closed = new Set(names);
  draw();
  fit(0.3);
}

function runSearch() {
  const words = find("search").value.toLowerCase().split(/\s+/).filter(Boolean);
  const text = (node) => [node.name, node.op, node.place, node.region, node.composite, node.reason, node.implementation].join(" ").toLowerCase();
  search.order = words.length ? nodes.filter((node) => isShown(node) && words.every((word) => text(node).includes(word))).map((node) => node.index) : [];
  search.at = -1;
  const inGroups = search.order.map((index) => nodes[index].group).filter(Boolean);
  search.found = words.length ? new Set([...search.order, ...inGroups]) : null;
  showMatches();
  refresh();
}

function showMatches() {
  const { order, at, found } = search;
  find("matches").textContent = !found ? "" : at < 0 ? `${order.length} found` : `${at + 1} of ${order.length}`;
}

function nextMatch(step) {
  const { order } = search;
  if (!order.length) return;
  search.at = search.at < 0 && step < 0 ? order.length - 1 : (search.at + step + order.length) % order.length;
  const index = order[search.at];
  if (state.closed.has(nodes[index].group)) toggle(nodes[index].group);
  select(index, true);
  find("search").focus();
  showMatches();
}

/** To the next shown node of the model in its order, or along an edge. */
function step(key) {
  const shown = nodes.filter(isShown);
  if (!shown.length) return;
  const now = typeof state.selected === "number" ? state.selected : null;
  if (now === null) return select(shown[0].index, true);
  const pairs = connections();
  const at = shown.findIndex((node) => node.index === now);
  const target = {
    ArrowDown: () => pairs.find(([from]) => from === now)?.[1],
    ArrowUp: () => pairs.find(([, to]) => to === now)?.[0],
    ArrowRight: () => shown[at + 1]?.index,
    ArrowLeft: () => shown[at - 1]?.index,
  }[key]();
  if (target !== undefined) select(target, true);
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  find("theme").textContent = theme === "dark" ? "Light" : "Dark";
}

const KEYS = {
  "/": () => find("search").focus(),
  "+": () => zoom(1.25),
  "=": () => zoom(1.25),
  "-": () => zoom(0.8),
  0: () => fit(),
  d: () => find("theme").click(),
  "?": () => find("help").click(),
  Escape: () => select(null),
  c: () => {
    const group = typeof state.selected === "number" ? nodes[state.selected].group : state.selected;
    if (group) toggle(group);
  },
  Enter: () => {
    const group = document.activeElement?.dataset?.group;
    if (group) toggle(group);
  },
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || find("keys").open) return;
  if (event.target === find("search")) {
    if (event.key === "Enter") nextMatch(event.shiftKey ? -1 : 1);
    if (event.key === "Escape") svg.focus();
    return;
  }
  if (event.target.matches("select, input, pre, summary, button, a")) {
    if (event.key !== "/" && event.key !== "Escape") return;
  }
  const action = event.key.startsWith("Arrow") ? () => step(event.key) : KEYS[event.key];
  if (!action) return;
  event.preventDefault();
  action();
});

function connectMouse() {
  let drag = null;
  svg.addEventListener("wheel", (event) => {
    event.preventDefault();
    const { left, top } = svg.getBoundingClientRect();
    zoom(Math.exp(-event.deltaY * 0.0015), [event.clientX - left, event.clientY - top]);
  }, { passive: false });
  svg.addEventListener("pointerdown", (event) => {
    drag = { x: event.clientX, y: event.clientY, moved: false };
  });
  svg.addEventListener("pointermove", (event) => {
    hover(event);
    if (!drag) return;
    const [x, y] = [event.clientX - drag.x, event.clientY - drag.y];
    if (!drag.moved && Math.hypot(x, y) < 4) return;
    if (!drag.moved) svg.setPointerCapture(event.pointerId);
    Object.assign(drag, { x: event.clientX, y: event.clientY, moved: true });
    view.x += x;
    view.y += y;
    svg.classList.add("dragging");
    look();
  });
  svg.addEventListener("pointerup", (event) => {
    const moved = drag?.moved;
    drag = null;
    svg.classList.remove("dragging");
    if (!moved) pick(event.target.closest("[data-node], [data-group]"));
  });
  svg.addEventListener("pointerleave", () => (tip.hidden = true));
  svg.addEventListener("dblclick", (event) => {
    const group = event.target.closest("[data-group]")?.dataset.group;
    if (group) toggle(group);
  });
}

function pick(element) {
  if (!element) return select(null);
  const { node, group } = element.dataset;
  select(node === undefined ? group : Number(node));
}

function hover(event) {
  const element = event.target.closest("[data-node], [data-group]");
  tip.hidden = !element || event.buttons > 0;
  if (tip.hidden) return;
  const { node, group } = element.dataset;
  tip.textContent = node === undefined ? `${group}\n${groupText(group)}\ndouble click opens or closes it` : tipOf(nodes[node]);
  const area = find("canvas").getBoundingClientRect();
  const left = Math.min(event.clientX - area.left + 14, area.width - tip.offsetWidth - 6);
  const top = event.clientY - area.top + 18;
  tip.style.left = `${Math.max(left, 4)}px`;
  tip.style.top = `${top + tip.offsetHeight > area.height ? top - tip.offsetHeight - 30 : top}px`;
}

function tipOf(node) {
  const where = [node.place, node.region && `region ${node.region}`, node.composite].filter(Boolean).join(", ");
  const time = node.steps.length ? duration(stepOf(node).milliseconds) : "";
  const error = node.error === null ? "" : `error ${node.error.toExponential(1)}${node.agrees ? "" : ", DIFFERS"}`;
  return [`${node.op}  ${node.name}`, where, node.reason, [time, error].filter(Boolean).join(", ")].filter(Boolean).join("\n");
}

function fillHeader() {
  find("title").textContent = data.title;
  for (const place of places) {
    const box = element("input", { type: "checkbox", id: `show-${place}`, checked: !state.hidden.has(place) });
    box.addEventListener("change", () => {
      if (box.checked) state.hidden.delete(place);
      else state.hidden.add(place);
      draw();
      runSearch();
    });
    const swatch = element("span", { className: "swatch" });
    swatch.style.background = colourOf(place);
    const count = nodes.filter((node) => node.place === place).length;
    find("places").append(element("label", {}, box, swatch, `${place} (${count})`));
  }
  for (const [value, known] of [["time", data.profile], ["error", data.verification]]) {
    find("colour").querySelector(`[value=${value}]`).disabled = !known;
  }
  find("colour").addEventListener("change", (event) => {
    state.colour = event.target.value;
    draw();
  });
  find("search").addEventListener("input", runSearch);
  find("fit").addEventListener("click", () => fit());
  find("collapse").addEventListener("click", () => setClosed(groups.keys()));
  find("expand").addEventListener("click", () => setClosed([]));
  find("theme").addEventListener("click", () => setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));
  find("help").addEventListener("click", () => find("keys").showModal());
}

const dark = matchMedia("(prefers-color-scheme: dark)");
setTheme(dark.matches ? "dark" : "light");
dark.addEventListener("change", (event) => setTheme(event.matches ? "dark" : "light"));
if (isLarge) state.closed = new Set(groups.keys());
if (nodes.length && !nodes.some(isShown)) state.hidden.clear();
fillHeader();
connectMouse();
draw();
fit(0.65);
describe();
window.addEventListener("resize", look);
