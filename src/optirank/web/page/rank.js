// Ranks of the values of one sample among themselves, and what the values are like.

/** Twice the ranks of some values, from 0 up; equal values share their mean rank. */
export function doubledRanks(values) {
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

/** The number of values outside the largest group of equal ones. */
export function genesApart(values) {
  const ordered = values.slice().sort();
  let largest = 0;
  let start = 0;
  for (let end = 1; end <= ordered.length; end++) {
    if (end < ordered.length && ordered[end] === ordered[start]) continue;
    largest = Math.max(largest, end - start);
    start = end;
  }
  return ordered.length - largest;
}

const SCALE_ROWS = 200; // samples that tell the scale of a block
const LINEAR_ABOVE = 50; // logarithms of expression values do not reach this

/** What the values of a block are: counts, linear or log (see `value_scale` of Python). */
export function valueScale(values, nSamples, nGenes) {
  const rows = Math.min(nSamples, SCALE_ROWS);
  let lowest = Infinity;
  let largest = 0;
  let whole = true;
  let seen = false;
  for (let k = 0; k < rows; k++) {
    const row = nSamples > SCALE_ROWS ? spaced(k, nSamples) : k;
    for (let j = 0; j < nGenes; j++) {
      const x = values[row * nGenes + j];
      if (!Number.isFinite(x)) continue;
      seen = true;
      lowest = Math.min(lowest, x);
      largest = Math.max(largest, Math.abs(x));
      whole &&= x === Math.floor(x);
    }
  }
  if (!seen || (lowest >= 0 && whole)) return "counts";
  return largest > LINEAR_ABOVE ? "linear" : "log";
}

/** The scale of some columns of values. */
export function scaleOfColumns(values, nSamples, nGenes, columns) {
  const rows = Math.min(nSamples, SCALE_ROWS);
  const some = new Float64Array(rows * columns.length);
  for (let k = 0; k < rows; k++) {
    const row = nSamples > SCALE_ROWS ? spaced(k, nSamples) : k;
    columns.forEach((column, j) => (some[k * columns.length + j] = values[row * nGenes + column]));
  }
  return valueScale(some, rows, columns.length);
}

/** The k-th of 200 evenly spaced rows, as NumPy's linspace places them. */
function spaced(k, nSamples) {
  if (k === SCALE_ROWS - 1) return nSamples - 1;
  return Math.floor(k * ((nSamples - 1) / (SCALE_ROWS - 1)));
}

/** Shares of values that are zero or negative, to six digits, and their scale. */
export function valueShares(values, nSamples, nGenes, blockRows) {
  let zero = 0;
  let negative = 0;
  for (const x of values) {
    if (x === 0) zero++;
    else if (x < 0) negative++;
  }
  const size = Math.max(1, values.length);
  const first = Math.min(nSamples, blockRows);
  const round = (x) => Math.round(x * 1e6) / 1e6;
  return {
    scale: values.length ? valueScale(values, first, nGenes) : null,
    zeros: round(zero / size),
    negative: round(negative / size),
  };
}

const NEAR = 0.01; // far from 0 and 1 for any gene that was not standardised

/** Whether most genes that vary have mean 0 and standard deviation 1. */
export function standardised(values, nSamples, nGenes) {
  if (nSamples < 2) return false;
  const sums = new Float64Array(nGenes);
  const squares = new Float64Array(nGenes);
  let lowest = 0;
  for (let at = 0, j = 0; at < values.length; at++) {
    const x = values[at];
    sums[j] += x;
    squares[j] += x * x;
    if (x < lowest) lowest = x;
    if (++j === nGenes) j = 0;
  }
  if (lowest >= 0) return false;
  let varying = 0;
  let standard = 0;
  const correction = Math.sqrt(nSamples / (nSamples - 1));
  for (let j = 0; j < nGenes; j++) {
    const mean = sums[j] / nSamples;
    const variance = squares[j] / nSamples - mean * mean;
    if (!(variance > 0)) continue;
    varying++;
    const deviation = Math.sqrt(variance);
    const unit = Math.abs(deviation - 1) < NEAR || Math.abs(deviation * correction - 1) < NEAR;
    if (unit && Math.abs(mean) < NEAR) standard++;
  }
  return standard > varying / 2;
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
