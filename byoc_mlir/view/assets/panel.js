// What is known of the selection, as text: all of it is written as text, never as markup.

const panel = document.getElementById("panel");

function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

function list(entries) {
  const rows = entries.filter(([, value]) => value !== "" && value !== null && value !== undefined);
  return element("dl", {}, ...rows.flatMap(([name, value]) => [element("dt", { textContent: name }), element("dd", {}, value)]));
}

/** Shows what there is to say of the selection, or of the model. */
async function describe() {
  const chosen = state.selected;
  const texts = await details;
  if (state.selected !== chosen) return;
  const parts = chosen === null ? ofModel() : typeof chosen === "number" ? ofNode(nodes[chosen], texts) : ofGroup(chosen, texts);
  panel.replaceChildren(...parts);
  panel.scrollTop = 0;
}

function ofModel() {
  const parts = [element("h2", { textContent: data.title })];
  parts.push(...data.summary.map((text) => element("p", { textContent: text, className: text.startsWith("warning") ? "warning" : "" })));
  if (data.profile) {
    const { milliseconds, runs, threads } = data.profile;
    parts.push(element("p", { textContent: `${duration(milliseconds)} a run, the median of ${runs}, on ${threads} thread${threads === 1 ? "" : "s"}` }));
    parts.push(element("h3", { textContent: "Slowest steps" }), stepTable());
  }
  if (data.verification) {
    const { agrees, against } = data.verification;
    parts.push(element("p", { textContent: `the model ${agrees ? "agrees with" : "DIFFERS from"} ${against}`, className: agrees ? "" : "warning" }));
    parts.push(element("h3", { textContent: "Largest errors" }), errorTable());
  }
  parts.push(element("p", { textContent: "Select a node or a region to see its IR and code. Press ? for keys." }));
  return parts;
}

function table(heads, rows) {
  const head = element("tr", {}, ...heads.map((text, at) => element("th", { textContent: text, className: at ? "" : "number" })));
  return element("table", {}, head, ...rows);
}

function stepTable() {
  const order = [...data.steps].sort((one, other) => other.milliseconds - one.milliseconds).slice(0, 15);
  return table(["time", "share", "step"], order.map((step) =>
    element(
      "tr",
      {},
      element("td", { className: "number", textContent: duration(step.milliseconds) }),
      element("td", { className: "number", textContent: `${(step.share * 100).toFixed(1)}%` }),
      element("td", {}, step.nodes.length ? linkTo(step.nodes[0], step.nodes.length - 1) : step.title),
    ),
  ));
}

function errorTable() {
  const known = nodes.filter((node) => node.error !== null);
  const order = known.sort((one, other) => other.error - one.error).slice(0, 15);
  return table(["error", "node"], order.map((node) =>
    element("tr", {}, element("td", { className: "number", textContent: node.error.toExponential(1) }), element("td", {}, linkTo(node.index, 0))),
  ));
}

function linkTo(index, others = 0) {
  const node = nodes[index];
  const text = `${node.name} (${node.op})${others ? ` and ${others} more` : ""}`;
  return element("a", { textContent: text, href: "#", onclick: (event) => (event.preventDefault(), select(index, true)) });
}

function links(indices) {
  if (!indices.length) return "";
  return element("span", {}, ...indices.flatMap((index, at) => (at ? [", ", linkTo(index)] : [linkTo(index)])));
}

function ofNode(node, texts) {
  const pairs = connections();
  const step = node.steps.length ? stepOf(node) : null;
  const others = step ? step.nodes.filter((index) => index !== node.index) : [];
  const region = node.region && element("a", { textContent: node.region, href: "#", onclick: (event) => (event.preventDefault(), select(node.region, true)) });
  const facts = list([
    ["op", node.op],
    ["runs on", node.place],
    ["region", region],
    ["pattern", node.composite],
    ["why", node.reason],
    ["precision", node.precision],
    ["computed by", step?.implementation || node.implementation],
    ["layout", step?.layout],
    ["time", step && `${duration(step.milliseconds)}, ${(step.share * 100).toFixed(1)}% of the run`],
    ["rates", step && rates(step)],
    ["together with", links(others)],
    ["error", node.error === null ? "" : `${node.error.toExponential(2)} of the largest element${node.agrees ? "" : ": DIFFERS"}`],
    ["reads", links(pairs.filter(([, to]) => to === node.index).map(([from]) => from))],
    ["is read by", links(pairs.filter(([from]) => from === node.index).map(([, to]) => to))],
  ]);
  const called = new Set([...(texts.calls?.[node.name] ?? []), ...node.steps.map((at) => data.steps[at].implementation)]);
  return [element("h2", { textContent: node.name }), facts, ...sections(texts.nodes[node.name], [...called], texts)];
}

function rates({ gflops, gbytes }) {
  const known = [[gflops, "GFLOP/s"], [gbytes, "GB/s"]].filter(([value]) => value >= 0.05);
  return known.map(([value, unit]) => `${value.toFixed(1)} ${unit}`).join(", ");
}

function ofGroup(group, texts) {
  const members = groups.get(group);
  const facts = list([
    ["runs on", members[0].place],
    ["holds", groupText(group)],
    ["patterns", [...new Set(members.map((node) => node.composite).filter(Boolean))].join(", ")],
    ["nodes", links(members.map((node) => node.index))],
  ]);
  const called = Object.keys(texts.functions).filter((name) => name === group || name.startsWith(`${group}_`));
  return [element("h2", { textContent: group }), facts, ...sections(texts.regions[group], called, texts)];
}

/** IR and code, each closed until it is asked for. */
function sections(excerpts = [], called = [], texts) {
  const code = called.filter((name) => texts.functions[name]).map((name) => [name, texts.functions[name]]);
  const parts = [];
  if (excerpts.length) parts.push(element("h3", { textContent: "IR" }), ...excerpts.map((one, at) => section(one, at === 0)));
  if (code.length) parts.push(element("h3", { textContent: "Generated code" }), ...code.map((one) => section(one, false)));
  return parts;
}

function section([title, text], open) {
  return element("details", { open }, element("summary", { textContent: title }), element("pre", { textContent: text, tabIndex: 0 }));
}
