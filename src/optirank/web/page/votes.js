// From the values of one sample to ranks, scores, probabilities, likeness and contributions.

/** Twice the ranks of some values, from 0 up; equal values share their mean rank. */
function doubledRanks(values) {
  const order = Uint32Array.from(values.keys()).sort((a, b) => values[a] - values[b]);
  const ranks = new Float64Array(values.length);
  let start = 0;
  for (let end = 1; end <= order.length; end++) {
    if (end < order.length && values[order[end]] === values[order[start]]) continue;
    for (let k = start; k < end; k++) ranks[order[k]] = start + end - 1;
    start = end;
  }
  return ranks;
}

/** Centred ranks, from -1/2 to 1/2: what a gene wins of its comparisons. */
export function centredRanks(values) {
  const n = values.length;
  return doubledRanks(values).map((rank) => (rank - (n - 1)) / (2 * n));
}

/** Scores of centred ranks by weights with one row per score. */
export function scoresOf(centred, { coef, nRows }) {
  const n = centred.length;
  const scores = new Float64Array(nRows);
  for (let k = 0; k < nRows; k++) {
    for (let j = 0; j < n; j++) scores[k] += centred[j] * coef[k * n + j];
  }
  return scores;
}

/** One score per class: minus and plus the one score of two classes. */
export const byClass = (scores) => (scores.length === 1 ? Float64Array.of(-scores[0], scores[0]) : scores);

/** The position of the highest number, the first of equal ones. */
export function best(numbers) {
  let at = 0;
  for (let k = 1; k < numbers.length; k++) if (numbers[k] > numbers[at]) at = k;
  return at;
}

/** Probabilities of the classes: g(z_k) / sum g(z_m), with g the calibration's function. */
export function probabilitiesOf(scores, calibration) {
  const slope = calibration?.slope ?? 1;
  const offset = calibration?.offset ?? (scores.length > 1 ? -Infinity : 0);
  const logs = byClass(scores).map((score) => {
    if (offset === -Infinity) return slope * score;
    const u = slope * score + offset;
    return -(Math.max(0, -u) + Math.log1p(Math.exp(-Math.abs(u))));
  });
  const top = Math.max(...logs);
  const parts = logs.map((log) => Math.exp(log - top));
  const total = parts.reduce((sum, x) => sum + x, 0);
  return parts.map((x) => x / total);
}

/** The correlation of two rows; 0 where one is constant. */
export function correlation(a, b) {
  const mean = (row) => row.reduce((sum, x) => sum + x, 0) / row.length;
  const [meanA, meanB] = [mean(a), mean(b)];
  let product = 0;
  let squareA = 0;
  let squareB = 0;
  for (let j = 0; j < a.length; j++) {
    const [x, y] = [a[j] - meanA, b[j] - meanB];
    product += x * y;
    squareA += x * x;
    squareB += y * y;
  }
  const size = Math.sqrt(squareA * squareB);
  return size > 0 ? product / size : 0;
}

/** The median of some numbers. */
export function median(numbers) {
  const ordered = Float64Array.from(numbers).sort();
  const half = ordered.length >> 1;
  return ordered.length % 2 ? ordered[half] : (ordered[half - 1] + ordered[half]) / 2;
}

/** A function that is linear between rising points, and constant outside, at x. */
export function between(x, xs, ys) {
  if (x <= xs[0]) return ys[0];
  for (let k = 1; k < xs.length; k++) {
    if (x < xs[k]) return ys[k - 1] + ((x - xs[k - 1]) * (ys[k] - ys[k - 1])) / (xs[k] - xs[k - 1]);
  }
  return ys.at(-1);
}

/** What each gene contributes to the score of a class, the largest first. */
export function contributions(values, panel, c) {
  const n = values.length;
  const centred = centredRanks(values);
  // The first of two classes has the weights of the second, turned
  const weights = panel.nRows > 1 ? panel.coef.slice(c * n, (c + 1) * n) : panel.coef.map((x) => (c ? x : -x));
  const genes = panel.present.map((gene, j) => ({
    gene,
    value: values[j],
    rank: centred[j],
    contribution: weights[j] * centred[j],
  }));
  genes.sort((a, b) => Math.abs(b.contribution) - Math.abs(a.contribution));
  return { genes, score: genes.reduce((sum, line) => sum + line.contribution, 0) };
}
