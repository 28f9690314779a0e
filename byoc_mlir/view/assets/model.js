// What the page knows: nodes, which of them are shown, and what connects those.

/** The text without characters that are invisible or turn others round; models choose names. */
const printable = (text) =>
  text.replace(/[^\P{C}\n\t]|[\p{Zl}\p{Zp}]/gu, (one) => `\\u{${one.codePointAt(0).toString(16)}}`);

/** JSON with printable texts, and objects that have only their own keys: a node may be called "constructor". */
const parsed = (json) =>
  JSON.parse(json, (_, value) => {
    if (typeof value === "string") return printable(value);
    if (value === null || typeof value !== "object" || Array.isArray(value)) return value;
    const own = Object.create(null);
    for (const [key, one] of Object.entries(value)) own[printable(key)] = one;
    return own;
  });

const data = parsed(document.getElementById("data").textContent);
const nodes = data.nodes.map((row, index) => ({ ...row, index }));
const places = [...new Set(nodes.map((node) => node.place))];
const GONE = ["folded", "removed"];

const state = {
  hidden: new Set(GONE),
  closed: new Set(),
  selected: null, // the index of a node, or the name of a group
  colour: "place",
};

const isShown = (node) => !state.hidden.has(node.place);

const MANY = 400; // more nodes than that are shown in closed groups at first
const MOST_IN_GROUP = 80;
const isLarge = nodes.filter(isShown).length > MANY;

/** The nodes of each group by its name: those of a region; of large models also those of a
 * placement that follow each other without a region between them. Each node gets its `group`. */
const groups = groupsOf(nodes);

function groupsOf(all) {
  const found = new Map();
  let run = "";
  let runs = 0;
  for (const node of all) {
    node.group = node.region;
    if (isLarge && !node.region && isShown(node)) {
      if (found.get(run)?.at(-1).place !== node.place || found.get(run).length === MOST_IN_GROUP) {
        runs += 1;
        run = `${node.place} ${runs}`;
      }
      node.group = run;
    } else if (node.region) {
      run = "";
    }
    if (node.group) found.set(node.group, [...(found.get(node.group) ?? []), node]);
  }
  for (const [name, members] of found) {
    if (members.length > 1 || members[0].region) continue;
    found.delete(name); // a single node is no group
    members[0].group = "";
  }
  return found;
}

/** Pairs of shown nodes, of which the second reads the first: through nodes that are hidden, too. */
function connections() {
  const givers = new Map();
  const pairs = new Map();
  for (const node of nodes) {
    const read = [...new Set(node.inputs.flatMap((tensor) => givers.get(tensor) ?? []))];
    const shown = isShown(node);
    if (shown) read.forEach((from) => pairs.set(`${from} ${node.index}`, [from, node.index]));
    const given = shown ? [node.index] : node.place === "folded" ? [] : read;
    node.outputs.forEach((tensor) => givers.set(tensor, given));
  }
  return [...pairs.values()];
}

/** The steps of a profile that a group has. */
function stepsOf(group) {
  const own = new Set(groups.get(group).flatMap((node) => node.steps));
  return data.steps.filter((step, at) => own.has(at) || step.region === group);
}

const milliseconds = (steps) => steps.reduce((sum, step) => sum + step.milliseconds, 0);

/** The step that computes a node; of several the slowest. */
function stepOf(node) {
  const own = node.steps.map((number) => data.steps[number]);
  return own.sort((one, other) => other.milliseconds - one.milliseconds)[0];
}

const slowest = Math.max(...data.steps.map((step) => step.milliseconds), 1e-9);

/** How hot a node is, from 0 to 1; null where nothing is known of it. */
function heatOf(node) {
  if (state.colour === "time") {
    return node.steps.length ? Math.sqrt(stepOf(node).milliseconds / slowest) : null;
  }
  if (state.colour === "error" && node.error !== null) {
    const exponent = Math.log10(Math.max(node.error, 1e-9)); // 1e-8 is cold, 1 is hot
    return Math.min(Math.max((exponent + 8) / 8, 0), 1);
  }
  return null;
}

const duration = (ms) => (ms >= 0.01 || ms === 0 ? `${ms.toFixed(3)} ms` : `${(ms * 1000).toFixed(1)} µs`);
const short = (text, length) => (text.length > length ? `…${text.slice(1 - length)}` : text);

/** The texts of IR and code, which are compressed: `{nodes, regions, functions}`. */
const details = (async () => {
  const packed = document.getElementById("details").textContent.trim();
  if (!packed) return { nodes: {}, regions: {}, functions: {} };
  const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return parsed(await new Response(stream).text());
})();
