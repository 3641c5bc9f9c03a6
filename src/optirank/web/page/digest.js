// The checksum of a query, the same one as in the record of `optirank predict`.

const MASK = (1n << 64n) - 1n;
const MULTIPLIER = (2549297995355413924n << 64n) | 4865540595714422341n; // of PCG64
const IV = [
  0x6a09e667f3bcc908n, 0xbb67ae8584caa73bn, 0x3c6ef372fe94f82bn, 0xa54ff53a5f1d36f1n,
  0x510e527fade682d1n, 0x9b05688c2b3e6c1fn, 0x1f83d9abfb41bd6bn, 0x5be0cd19137e2179n,
];
const SIGMA = [
  "0123456789abcdef", "ea489fd61c02b753", "b8c052fdae367194", "7931dcbe265a40f8", "905724afe1bc683d",
  "2c6a0b834d75fe19", "c51fed4a0763928b", "db7ec13950f4862a", "6fe9b308c2d714a5", "a2847615fb9e3cd0",
].map((row) => [...row].map((digit) => parseInt(digit, 16)));
const QUARTERS = ["048c", "159d", "26ae", "37bf", "05af", "16bc", "278d", "349e"].map((row) =>
  [...row].map((digit) => parseInt(digit, 16)),
);

const rotated = (x, n) => ((x >> n) | (x << (64n - n))) & MASK;

/** BLAKE2b of chunks of bytes, 16 bytes long, in hexadecimal digits. */
export class Blake2b {
  #h = IV.slice();
  #block = new Uint8Array(128);
  #filled = 0;
  #length = 0n;

  constructor() {
    this.#h[0] ^= 0x01010000n ^ 16n;
  }

  update(bytes) {
    for (let at = 0; at < bytes.length; ) {
      if (this.#filled === 128) this.#compress(false);
      const part = bytes.subarray(at, at + 128 - this.#filled);
      this.#block.set(part, this.#filled);
      this.#filled += part.length;
      at += part.length;
    }
  }

  hexdigest() {
    this.#block.fill(0, this.#filled);
    this.#compress(true);
    let text = "";
    for (const word of this.#h.slice(0, 2)) {
      for (let byte = 0n; byte < 8n; byte++) {
        text += ((word >> (8n * byte)) & 255n).toString(16).padStart(2, "0");
      }
    }
    return text;
  }

  #compress(last) {
    this.#length += BigInt(this.#filled);
    const view = new DataView(this.#block.buffer);
    const m = Array.from({ length: 16 }, (_, k) => view.getBigUint64(8 * k, true));
    const v = [...this.#h, ...IV];
    v[12] ^= this.#length & MASK;
    if (last) v[14] ^= MASK;
    for (let round = 0; round < 12; round++) {
      const s = SIGMA[round % 10];
      QUARTERS.forEach(([a, b, c, d], k) => {
        v[a] = (v[a] + v[b] + m[s[2 * k]]) & MASK;
        v[d] = rotated(v[d] ^ v[a], 32n);
        v[c] = (v[c] + v[d]) & MASK;
        v[b] = rotated(v[b] ^ v[c], 24n);
        v[a] = (v[a] + v[b] + m[s[2 * k + 1]]) & MASK;
        v[d] = rotated(v[d] ^ v[a], 16n);
        v[c] = (v[c] + v[d]) & MASK;
        v[b] = rotated(v[b] ^ v[c], 63n);
      });
    }
    this.#h = this.#h.map((h, k) => h ^ v[k] ^ v[k + 8]);
    this.#filled = 0;
  }
}

/** Random odd numbers of 64 bits, as NumPy's generator with seed 0 draws them. */
function factors(n, { state, inc }) {
  let now = BigInt(state);
  return Array.from({ length: n }, () => {
    now = (now * MULTIPLIER + BigInt(inc)) & ((1n << 128n) - 1n);
    const drawn = rotated((now >> 64n) ^ (now & MASK), now >> 122n);
    return (2n * (drawn >> 1n) + 1n) & MASK;
  });
}

const NAMES = 100_000; // that are joined at a time

/**
 * One checksum of the names of genes and samples, and of all values; the order of the samples does
 * not matter.
 */
export function queryChecksum(genes, samples, values, nGenes, generator) {
  const digest = new Blake2b();
  const encoder = new TextEncoder();
  const sums = sampleSums(values, nGenes, factors(nGenes, generator));
  const order = samplesInOrder(samples, sums);
  for (const names of [genes, order.map((i) => samples[i])]) {
    for (let start = 0; start < names.length; start += NAMES) {
      digest.update(encoder.encode(`${names.slice(start, start + NAMES).join("\0")}\0`));
    }
  }
  const ordered = new DataView(new ArrayBuffer(8 * order.length));
  order.forEach((i, k) => ordered.setBigUint64(8 * k, sums[i], true));
  digest.update(new Uint8Array(ordered.buffer));
  return digest.hexdigest();
}

/** Positions of the samples by their names, as Python orders texts, and then by their sums. */
function samplesInOrder(samples, sums) {
  const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
  return Array.from(samples.keys()).sort(
    (i, j) => byCodePoints(samples[i], samples[j]) || compare(sums[i], sums[j]) || i - j,
  );
}

/** Compares texts by their characters; JavaScript's own order is that of halves of these. */
function byCodePoints(a, b) {
  if (a === b) return 0;
  let k = 0;
  while (k < a.length && a.charCodeAt(k) === b.charCodeAt(k)) k++;
  const rank = (text) => {
    if (k >= text.length) return -1;
    const unit = text.charCodeAt(k);
    return unit >= 0xd800 && unit < 0xe000 ? unit + 0x10000 : unit; // a half of a higher one
  };
  return rank(a) - rank(b);
}

/** Of each sample the sum of its values' bits times the factors, modulo 2^64. */
function sampleSums(values, nGenes, odd) {
  const nSamples = values.length / nGenes;
  const sums = new BigUint64Array(nSamples);
  const parts = odd.map((a) => [0n, 16n, 32n, 48n].map((at) => Number((a >> at) & 0xffffn)));
  const single = new Float32Array(nGenes);
  const bits = new Uint32Array(single.buffer);
  const word = new Float64Array(4); // sums of 16 bits each, exact in doubles
  for (let i = 0; i < nSamples; i++) {
    single.set(values.subarray(i * nGenes, (i + 1) * nGenes));
    word.fill(0);
    for (let j = 0; j < nGenes; j++) {
      if (bits[j] === 0) continue;
      const low = bits[j] & 0xffff;
      const high = bits[j] >>> 16;
      const part = parts[j];
      word[0] += low * part[0];
      word[1] += low * part[1] + high * part[0];
      word[2] += low * part[2] + high * part[1];
      word[3] += low * part[3] + high * part[2];
    }
    const sum = word.reduceRight((total, x) => (total << 16n) + BigInt(x), 0n);
    sums[i] = sum & MASK;
  }
  return sums;
}
