// A tree of labels: the classes of a model are its leaves, coarser labels are inside.

/** A tree of pairs of a label and its parent, "" at the top; its labels from the top down. */
export function readTree(pairs) {
  const parents = new Map(pairs);
  const children = new Map([["", []], ...pairs.map(([label]) => [label, []])]);
  for (const [label, parent] of pairs) children.get(parent).push(label);
  const labels = [];
  const waiting = children.get("").slice().reverse();
  while (waiting.length) {
    const label = waiting.pop();
    labels.push(label);
    waiting.push(...children.get(label).slice().reverse());
  }
  const place = new Map(labels.map((label, k) => [label, k]));
  const ways = labels.map((label) => {
    const way = [];
    for (let name = label; name; name = parents.get(name)) way.unshift(place.get(name));
    return way;
  });
  const depth = Math.max(...ways.map((way) => way.length));
  return {
    labels,
    parents: labels.map((label) => place.get(parents.get(label)) ?? -1),
    children: labels.map((label) => children.get(label).map((name) => place.get(name))),
    tops: children.get("").map((name) => place.get(name)),
    ways,
    // A path that ends earlier repeats its last label
    paths: ways.map((way) => [...way, ...Array(depth - way.length).fill(way.at(-1))]),
  };
}

/** The way of a sample from the top, each time to the most probable label below. */
export function descend(tree, shares, classes) {
  const whole = new Float64Array(tree.labels.length);
  classes.forEach((name, c) => (whole[tree.labels.indexOf(name)] = shares[c]));
  for (let k = whole.length - 1; k >= 0; k--) if (tree.parents[k] >= 0) whole[tree.parents[k]] += whole[k];
  let at = -1;
  let below = tree.tops;
  while (below.length) {
    at = below.reduce((best, k) => (whole[k] > whole[best] ? k : best));
    below = tree.children[at];
  }
  return { path: tree.paths[at], confidence: tree.paths[at].map((k) => Math.min(1, whole[k])) };
}

/** The deepest label of a way whose confidence reaches a threshold, else the coarsest; and its confidence. */
export function labelOfWay(way, threshold) {
  const sure = way.confidence.filter((x) => x >= threshold).length;
  const last = Math.max(sure - 1, 0);
  return { label: way.path[last], confidence: way.confidence[last] };
}

/** Of each label the samples with it or a finer one, those with itself, and the sum of their confidence. */
export function treeTable(labels) {
  const lines = labels.tree.labels.map(() => ({ n: 0, itself: 0, sum: 0 }));
  labels.given.forEach((label, i) => {
    if (labels.codes[i]) return;
    lines[label].itself++;
    for (const k of labels.tree.ways[label]) {
      lines[k].n++;
      lines[k].sum += labels.confidence[i];
    }
  });
  return lines;
}
