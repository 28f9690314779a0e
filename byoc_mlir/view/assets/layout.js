// Where nodes and edges are: each open group is laid out alone, then stands in the whole as a box.

const NODE = { width: 168, height: 40 };
const CLOSED = { width: 230, height: 58 };
const BAR = 26;
const MARGIN = 14;
const MOST_LAYERED = 1200; // the library takes long for more, and runs out of stack

/** A layered layout of boxes `{id, width, height}` and edges `{from, to, weight}`. */
function layered(boxes, edges) {
  if (boxes.length > MOST_LAYERED) return stacked(boxes, edges);
  const graph = new dagre.graphlib.Graph();
  graph.setGraph({ nodesep: 22, ranksep: 30, ranker: boxes.length > 400 ? "longest-path" : "network-simplex" });
  boxes.forEach((box) => graph.setNode(box.id, { width: box.width, height: box.height }));
  edges.forEach((edge) => graph.setEdge(edge.from, edge.to, { weight: edge.weight ?? 1 }));
  dagre.layout(graph);
  const placed = boxes.map((box) => ({ ...box, ...graph.node(box.id) }));
  const lines = edges.map((edge) => ({ ...edge, points: graph.edge(edge.from, edge.to).points }));
  return withBounds(placed, lines);
}

/** Moved so that nothing is left of 0 or above it, with the size of all. */
function withBounds(boxes, lines) {
  const points = lines.flatMap((line) => line.points);
  const corners = boxes.flatMap(({ x, y, width, height }) => [
    { x: x - width / 2, y: y - height / 2 },
    { x: x + width / 2, y: y + height / 2 },
  ]);
  const all = [...corners, ...points];
  const least = (axis) => all.reduce((found, point) => Math.min(found, point[axis]), Infinity);
  const most = (axis) => all.reduce((found, point) => Math.max(found, point[axis]), -Infinity);
  if (!all.length) return { boxes, lines, width: 0, height: 0 };
  const [left, top] = [least("x"), least("y")];
  const moved = (point) => ({ ...point, x: point.x - left, y: point.y - top });
  return {
    boxes: boxes.map(moved),
    lines: lines.map((line) => ({ ...line, points: line.points.map(moved) })),
    width: most("x") - left,
    height: most("y") - top,
  };
}

/** As `layered`, without care for crossings: boxes in rows, each below all that it follows. */
function stacked(boxes, edges) {
  const row = new Map(boxes.map((box) => [box.id, 0]));
  const order = new Map(boxes.map((box, at) => [box.id, at]));
  const forward = edges.filter((edge) => order.get(edge.from) < order.get(edge.to));
  forward.sort((one, other) => order.get(one.from) - order.get(other.from));
  for (const { from, to } of forward) row.set(to, Math.max(row.get(to), row.get(from) + 1));
  const rows = Map.groupBy(boxes, (box) => row.get(box.id));
  const placed = [];
  let y = 0;
  for (const at of [...rows.keys()].sort((one, other) => one - other)) {
    const height = Math.max(...rows.get(at).map((box) => box.height));
    let x = 0;
    for (const box of rows.get(at)) {
      placed.push({ ...box, x: x + box.width / 2, y: y + height / 2 });
      x += box.width + 22;
    }
    y += height + 30;
  }
  const known = new Map(placed.map((box) => [box.id, box]));
  const ends = ({ from, to }) => [
    { x: known.get(from).x, y: known.get(from).y + known.get(from).height / 2 },
    { x: known.get(to).x, y: known.get(to).y - known.get(to).height / 2 },
  ];
  return withBounds(placed, edges.map((edge) => ({ ...edge, points: ends(edge) })));
}

/** The inside of a group. Edges from outside start at its top, those that leave end at its bottom. */
function insideOf(members, pairs) {
  const own = new Set(members.map((node) => node.index));
  const boxes = members.map((node) => ({ id: `n${node.index}`, node, ...NODE }));
  const edges = [];
  const ports = new Map();
  const port = (id, index) => {
    if (!ports.has(id)) ports.set(id, index);
    return id;
  };
  for (const [from, to] of pairs) {
    if (own.has(from) && own.has(to)) edges.push({ from: `n${from}`, to: `n${to}` });
    else if (own.has(to)) edges.push({ from: port(`in${from}`, from), to: `n${to}` });
    else if (own.has(from)) edges.push({ from: `n${from}`, to: port(`out${from}`, from) });
  }
  const unique = [...new Map(edges.map((edge) => [`${edge.from} ${edge.to}`, edge])).values()];
  const ends = [...ports.keys()].map((id) => ({ id, width: 2, height: 2 }));
  const poles = ["top", "bottom"].map((id) => ({ id, width: 2, height: 2 }));
  const held = [...ports.keys()].map((id) =>
    id.startsWith("in") ? { from: "top", to: id, weight: 50 } : { from: id, to: "bottom", weight: 50 },
  );
  const found = layered([...boxes, ...ends, ...poles], [...unique, ...held]);
  const shown = new Set(boxes.map((box) => box.id));
  return {
    boxes: found.boxes.filter((box) => shown.has(box.id)),
    ports: new Map(found.boxes.filter((box) => ports.has(box.id)).map((box) => [box.id, box])),
    lines: found.lines.filter((line) => line.from !== "top" && line.to !== "bottom"),
    width: Math.max(found.width, 150) + 2 * MARGIN,
    height: found.height + BAR + MARGIN,
  };
}

/** All of the picture: `{boxes, groups, lines, width, height}`, in one system of coordinates. */
function pictureOf() {
  const pairs = connections();
  const inside = new Map();
  for (const [name, members] of groups) {
    const shown = members.filter(isShown);
    if (shown.length && !state.closed.has(name)) inside.set(name, insideOf(shown, pairs));
  }
  const unit = (index) => (nodes[index].group ? `g${nodes[index].group}` : `n${index}`);
  const boxes = [];
  for (const node of nodes.filter((one) => isShown(one) && !one.group)) {
    boxes.push({ id: `n${node.index}`, node, ...NODE });
  }
  for (const [name, members] of groups) {
    if (!members.some(isShown)) continue;
    const size = inside.get(name) ?? CLOSED;
    boxes.push({ id: `g${name}`, group: name, width: size.width, height: size.height });
  }
  const crossing = pairs.filter(([from, to]) => unit(from) !== unit(to));
  const outer = new Map(crossing.map(([from, to]) => [`${unit(from)} ${unit(to)}`, { from: unit(from), to: unit(to) }]));
  const chain = pairs.length ? [] : boxes.slice(1).map((box, at) => ({ from: boxes[at].id, to: box.id, order: true }));
  const whole = layered(boxes, [...outer.values(), ...chain]);
  return joined(whole, inside, crossing, unit);
}

/** The boxes of groups filled, and the edges across their borders continued inside. */
function joined(whole, inside, crossing, unit) {
  const routes = new Map(whole.lines.map((line) => [`${line.from} ${line.to}`, line.points]));
  const picture = { boxes: [], groups: [], lines: [], width: whole.width, height: whole.height };
  const origin = new Map();
  for (const box of whole.boxes) {
    const found = box.group === undefined ? undefined : inside.get(box.group);
    if (!found) {
      picture.boxes.push(box);
      continue;
    }
    const corner = { x: box.x - box.width / 2 + MARGIN, y: box.y - box.height / 2 + BAR };
    const moved = (point) => ({ x: point.x + corner.x, y: point.y + corner.y });
    origin.set(box.group, { found, moved });
    picture.groups.push(box);
    picture.boxes.push(...found.boxes.map((one) => ({ ...one, ...moved(one) })));
    for (const line of found.lines) {
      if (found.ports.has(line.from) || found.ports.has(line.to)) continue;
      picture.lines.push({ points: line.points.map(moved), ends: [line.from, line.to] });
    }
  }
  for (const [from, to] of crossing) {
    const route = routes.get(`${unit(from)} ${unit(to)}`) ?? [];
    const points = [...leaving(origin, from), ...route, ...entering(origin, from, to)];
    picture.lines.push({ points, ends: [endOf(from), endOf(to)] });
  }
  for (const line of whole.lines.filter((one) => one.order)) {
    picture.lines.push({ points: line.points, ends: [line.from, line.to], order: true });
  }
  return picture;
}

const endOf = (index) => (state.closed.has(nodes[index].group) ? `g${nodes[index].group}` : `n${index}`);

function leaving(origin, from) {
  const home = origin.get(nodes[from].group);
  const line = home?.found.lines.find((one) => one.from === `n${from}` && one.to === `out${from}`);
  return line ? line.points.map(home.moved) : [];
}

function entering(origin, from, to) {
  const home = origin.get(nodes[to].group);
  const line = home?.found.lines.find((one) => one.from === `in${from}` && one.to === `n${to}`);
  return line ? line.points.map(home.moved) : [];
}
