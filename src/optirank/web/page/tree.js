// A tree of labels: the classes of a model are its leaves, coarser labels are inside.

const NO_LABEL = -1; // in place of a label's position
export const ID_COLUMN = "cell_type_ontology_term_id"; // CELLxGENE's name for ids of cell types
const NO_TERM = "unknown";

/** A tree of pairs of a label and its parent, "" at the top; `levels` are names of its levels. */
export function readTree(pairs, levels) {
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
  const pathOf = (label) => {
    const path = [];
    for (let name = label; name; name = parents.get(name)) path.unshift(place.get(name));
    return path;
  };
  const ways = labels.map(pathOf);
  const depth = Math.max(...ways.map((way) => way.length));
  return {
    parents,
    children,
    labels,
    place,
    depth,
    depths: ways.map((way) => way.length - 1),
    isLeaf: labels.map((label) => !children.get(label).length),
    // A path that ends earlier repeats its last label
    paths: ways.map((way) => [...way, ...Array(depth - way.length).fill(way.at(-1))]),
    levels: [...levels, ...Array.from({ length: depth }, (_, k) => `level ${k + 1}`).slice(levels.length)].slice(0, depth),
    named: levels,
  };
}

/** The tree of some of the leaves; labels that then have none below go too. */
export function treeOfClasses(tree, classes) {
  const kept = new Set(classes.flatMap((leaf) => tree.paths[tree.place.get(leaf)].map((k) => tree.labels[k])));
  return readTree([...tree.parents].filter(([label]) => kept.has(label)), tree.named);
}

/** Probabilities of all labels from those of the leaves. */
export function treeProbabilities(tree, shares, classes) {
  const whole = new Float64Array(tree.labels.length);
  classes.forEach((name, c) => (whole[tree.place.get(name)] = shares[c]));
  for (let k = whole.length - 1; k >= 0; k--) {
    const parent = tree.parents.get(tree.labels[k]);
    if (parent) whole[tree.place.get(parent)] += whole[k];
  }
  return whole;
}

/** The way of a sample from the top, each time to the most probable label below. */
export function descend(tree, shares, classes) {
  const whole = treeProbabilities(tree, shares, classes);
  let at = "";
  while (tree.children.get(at).length) {
    at = tree.children.get(at).reduce((best, name) =>
      whole[tree.place.get(name)] > whole[tree.place.get(best)] ? name : best,
    );
  }
  const path = tree.paths[tree.place.get(at)];
  return { path, confidence: path.map((k) => whole[k]) };
}

/** The deepest label of a way whose confidence reaches a threshold, and its confidence. */
export function labelOfWay(way, threshold) {
  const sure = way.confidence.filter((x) => x >= threshold).length;
  const last = Math.max(sure - 1, 0);
  return { label: sure ? way.path[last] : NO_LABEL, confidence: way.confidence[last] };
}

/**
 * The labels of samples on their ways: positions of labels, the coarsest where even that is unsure,
 * their confidences, and the classes at the ends of the ways with theirs.
 */
export function levelLabels(tree, ways, classes, threshold) {
  const labels = ways.map((way) => labelOfWay(way, threshold));
  return {
    given: Int32Array.from(labels, ({ label }, i) => (label === NO_LABEL ? ways[i].path[0] : label)),
    confidence: Float64Array.from(labels, ({ confidence }) => confidence),
    chosen: Uint16Array.from(ways, (way) => classes.indexOf(tree.labels[way.path.at(-1)])),
    leafConfidence: Float64Array.from(ways, (way) => way.confidence.at(-1)),
  };
}

/** Names of the columns of the levels. */
export const levelColumns = (tree) => tree.levels.map((name) => `level_${name.replace(/^level /, "")}`);

/** A label at every level; `withheld` above its own label, and everywhere for a label of -1. */
export function atLevels(tree, label, withheld) {
  return tree.levels.map((_, level) => {
    const reaches = label >= 0 && (tree.isLeaf[label] || tree.depths[label] >= level);
    return reaches ? tree.labels[tree.paths[label][level]] : withheld;
  });
}

/** The Cell Ontology id of a label. */
export const termOf = (terms, label) => terms.ids.get(label) ?? NO_TERM;

/** Of each label the samples with it or a finer one, those with itself, and their confidence. */
export function treeTable(labels) {
  const lines = labels.tree.labels.map(() => ({ n: 0, own: 0, sum: 0 }));
  labels.given.forEach((label, i) => {
    if (labels.codes[i]) return;
    lines[label].own++;
    for (const k of new Set(labels.tree.paths[label])) {
      lines[k].n++;
      lines[k].sum += labels.confidence[i];
    }
  });
  return lines;
}
