// What kind of values data hold, and how they differ from those of the training data.

import { share } from "./text.js";

const SCALE_ROWS = 200; // samples that tell the scale of a block
const LINEAR_ABOVE = 50; // logarithms of expression values do not reach this
const NEAR = 0.01; // far from 0 and 1 for any gene that was not standardised

/** What the values are: counts, linear or log (see `value_scale` of Python). */
export function valueScale(values, nSamples, nGenes) {
  const rows = Math.min(nSamples, SCALE_ROWS);
  let lowest = Infinity;
  let largest = 0;
  let whole = true;
  for (let k = 0; k < rows; k++) {
    const row = nSamples > SCALE_ROWS ? spaced(k, nSamples) : k;
    for (let j = 0; j < nGenes; j++) {
      const x = values[row * nGenes + j];
      if (!Number.isFinite(x)) continue;
      lowest = Math.min(lowest, x);
      largest = Math.max(largest, Math.abs(x));
      whole &&= Number.isInteger(x);
    }
  }
  if (whole && lowest >= 0) return "counts";
  return largest > LINEAR_ABOVE ? "linear" : "log";
}

/** The k-th of 200 evenly spaced rows, as NumPy's linspace places them. */
function spaced(k, nSamples) {
  if (k === SCALE_ROWS - 1) return nSamples - 1;
  return Math.floor(k * ((nSamples - 1) / (SCALE_ROWS - 1)));
}

/** The scale of a query's first block, and the shares of values that are zero or negative; null for no values. */
export function valueShares(values, nFirst, nGenes) {
  if (!values.length) return null;
  let zeros = 0;
  let negative = 0;
  for (const x of values) {
    if (x === 0) zeros++;
    else if (x < 0) negative++;
  }
  const shareOf = (n) => Math.round((n / values.length) * 1e6) / 1e6;
  return { scale: valueScale(values, nFirst, nGenes), zeros: shareOf(zeros), negative: shareOf(negative) };
}

/** How the values of a query differ from those of training, in ways that matter. */
export function valueNotes(query, trained, words) {
  if (!query || !trained) return [];
  const notes = [];
  if (query.negative && !trained.negative) {
    notes.push(
      `${share(query.negative, 1)} of the values are negative, and none were in the training ` +
        `data: ${words.scaled}`,
    );
  }
  if (!query.zeros && trained.zeros >= words.many_zeros) {
    notes.push(
      `no value is zero, and ${share(trained.zeros, 0)} were in the training data: that is usual ` +
        "for a microarray; smoothed or imputed values would change ranks",
    );
  } else if (query.zeros - trained.zeros > words.more_zeros) {
    notes.push(
      `${share(query.zeros, 0)} of the values are zero, and ${share(trained.zeros, 0)} were in the ` +
        "training data: zeros are ties, so labels are less certain; a larger panel may do better",
    );
  }
  return notes;
}

/** Whether most genes that vary have mean 0 and standard deviation 1. */
export function standardised(values, nSamples, nGenes) {
  if (nSamples < 2 || values.every((x) => x >= 0)) return false;
  const correction = Math.sqrt(nSamples / (nSamples - 1));
  let varying = 0;
  let standard = 0;
  for (let j = 0; j < nGenes; j++) {
    let sum = 0;
    let squares = 0;
    for (let at = j; at < values.length; at += nGenes) {
      sum += values[at];
      squares += values[at] ** 2;
    }
    const mean = sum / nSamples;
    const variance = squares / nSamples - mean * mean;
    if (!(variance > 0)) continue;
    varying++;
    const deviation = Math.sqrt(variance);
    const unit = Math.abs(deviation - 1) < NEAR || Math.abs(deviation * correction - 1) < NEAR;
    if (unit && Math.abs(mean) < NEAR) standard++;
  }
  return standard > varying / 2;
}
