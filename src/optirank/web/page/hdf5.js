// Files of HDF5: AnnData (.h5ad) and 10x (.h5), read in parts with h5wasm in a worker.

import { genesAmong } from "./genes.js";
import { quoted, readable, repeatedSamples, some } from "./text.js";

const SPAN = 1 << 20; // entries read together
const WHOLE = 16_000_000; // values of whole rows read together: 64 MB in single precision
const FOLDER = "/query";
const MARK = [137, 72, 68, 70, 13, 10, 26, 10]; // the first bytes of HDF5

/** Open an .h5ad or 10x .h5: the source that `label` takes; `options` has layer and geneColumn. */
export async function openHdf5(file, model, options) {
  if (!globalThis.h5wasm) {
    throw new Error(
      `${file.name}: this page reads tables (.csv, .tsv or .txt, also .gz); optirank export --h5ad ` +
        "makes one that reads .h5ad and .h5 too",
    );
  }
  const { FS } = await globalThis.h5wasm.ready;
  FS.mkdir(FOLDER);
  // A name of our own: that of the file may hold anything
  FS.mount(FS.filesystems.WORKERFS, { blobs: [{ name: "file", data: file }] }, FOLDER);
  const mark = new Uint8Array(await file.slice(0, 8).arrayBuffer());
  if (!MARK.every((byte, k) => mark[k] === byte)) throw new Error(`${file.name} is not an HDF5 file: fetch it again`);
  return readable(file.name, () => {
    const root = new globalThis.h5wasm.File(`${FOLDER}/file`, "r");
    if (root.file_id < 0) throw new Error("its HDF5 does not open");
    const keys = root.keys();
    if (keys.includes("obs") && keys.includes("var")) return anndata(root, file.name, model.genes, options);
    const genomes = keys.filter((key) => isGroup(root.get(key)) && root.get(key).keys().includes("indptr"));
    if (genomes.length === 1) return tenx(root.get(genomes[0]), file.name, model.genes, options);
    if (genomes.length) throw new Error(`${file.name} holds several genomes, ${some(genomes)}: split it`);
    throw new Error(`${file.name} is neither of AnnData nor of 10x: it has ${some(keys)}, and no obs, var and no matrix`);
  });
}

const isGroup = (element) => typeof element?.keys === "function";
const attribute = (element, name) => element.attrs[name]?.value;
const child = (group, key) => (group?.keys().includes(key) ? group.get(key) : null);

function anndata(root, name, wanted, options) {
  const { layer, geneColumn } = options;
  const samples = indexOf(root, "obs", name);
  const raw = isGroup(child(root, "raw")) ? root.get("raw") : null;
  const layers = child(root, "layers");
  const notes = [];
  let group = root;
  if (layer === "raw" && raw === null) throw new Error(`${name} has no raw (layer='raw'): use X, or another layer`);
  if (layer === "raw") group = raw;
  else if (layer && !child(layers, layer)) {
    throw new Error(`${name} has no layer ${quoted(layer)}: there are ${some(layers?.keys() ?? [])}`);
  } else if (!layer && !geneColumn && raw !== null && rawHasMore(root, raw, wanted, name, notes)) group = raw;
  const index = indexOf(group, "var", name);
  const columns = textColumns(group.get("var"));
  const element = layer && layer !== "raw" ? layers.get(layer) : child(group, "X");
  if (!element || attribute(element, "encoding-type") === "null") {
    throw new Error(`${name} has no X: name one of its layers (layer=), there are ${some(layers?.keys() ?? [])}`);
  }
  const source = sourceOf(name, matrixOf(element, name), index, columns, samples, wanted, options);
  source.notes.unshift(...notes);
  source.hasRaw = raw !== null && group !== raw;
  return source;
}

const ENOUGH = 0.9; // share of a model's genes above which X is used as it is

/** Whether raw is to be read instead of X, with a note. */
function rawHasMore(root, raw, wanted, name, notes) {
  const known = new Set(wanted.map((gene) => gene.toLowerCase()));
  const found = (group) => {
    const genes = new Set(indexOf(group, "var", name).map((gene) => gene.trim().toLowerCase()));
    return [...known].filter((gene) => genes.has(gene)).length;
  };
  const [inX, inRaw] = [found(root), found(raw)];
  if (inX > ENOUGH * known.size || inRaw - inX < (known.size - inX) / 2) return false;
  notes.push(`raw is read: X has ${inX} of the ${known.size} genes of the model, raw has ${inRaw}`);
  return true;
}

function tenx(group, name, wanted, options) {
  const isNew = group.keys().includes("features");
  const id = texts(group.get(isNew ? "features/id" : "genes"));
  const named = texts(group.get(isNew ? "features/name" : "gene_names"));
  const columns = { id, name: named };
  if (isNew && child(group.get("features"), "feature_type")) columns.feature_types = texts(group.get("features/feature_type"));
  const cells = texts(group.get("barcodes"));
  checkNumbers(group.get("data"), name);
  return sourceOf(name, compressed(group, [cells.length, id.length], true), named, columns, cells, wanted, options);
}

function sourceOf(name, matrix, index, columns, samples, wanted, { geneColumn, layer }) {
  if (matrix.shape[0] !== samples.length || matrix.shape[1] !== index.length) {
    throw new Error(
      `${name}: the matrix is ${matrix.shape.join(" x ")}, but there are ${samples.length} sample names and ` +
        `${index.length} gene names`,
    );
  }
  const { kept, genes, notes } = genesAmong(name, index, columns, geneColumn, wanted);
  const inFile = (groups) => groups.map((group) => group.map((k) => kept[k]));
  return {
    name,
    genes,
    hasRaw: false,
    notes: [...repeatedSamples(samples), ...notes],
    nSamples: samples.length,
    samples,
    options: { layer, gene_column: geneColumn },
    read: (parts, progress) =>
      readable(name, () => readParts(matrix, parts.map(({ groups, rows }) => ({ groups: inFile(groups), rows })), progress)),
  };
}

/** The names of samples or genes. */
function indexOf(group, key, name) {
  const element = group.get(key);
  if (isGroup(element)) return texts(element.get(attribute(element, "_index") ?? "_index"));
  throw new Error(
    `${name}: its '${key}' was written by anndata before 0.7; open it with anndata.read_h5ad and ` +
      "write it again",
  );
}

/** The columns of a table that hold text, null where a value is missing. */
function textColumns(element) {
  const columns = {};
  for (const column of [attribute(element, "column-order") ?? []].flat()) {
    const values = element.get(column);
    const kind = attribute(values, "encoding-type");
    if (kind === "string-array") columns[column] = texts(values);
    else if (kind === "categorical") {
      const categories = texts(values.get("categories"));
      columns[column] = Array.from(values.get("codes").value, (code) => categories[code] ?? null);
    } else if (kind === "nullable-string-array") {
      const missing = values.get("mask").value;
      columns[column] = texts(values.get("values")).map((text, k) => (missing[k] ? null : text));
    }
  }
  return columns;
}

/** A data set as texts; numbers as they are written. */
const texts = (dataset) => Array.from(dataset.value ?? [], String);

const KINDS = { 0: [1, 2, 4, 8], 1: [4, 8], 8: [1, 2, 4, 8] }; // bytes of integers, floats, booleans

/** Refuse values that the library gives as bytes. */
function checkNumbers(dataset, name) {
  const { type, size, littleEndian } = dataset.metadata;
  if (KINDS[type]?.includes(size) && littleEndian !== false) return;
  throw new Error(
    `${name}: its values are stored as ${dataset.dtype}, which this page does not read: write them ` +
      "as float32, or use optirank predict",
  );
}

function matrixOf(element, name) {
  if (!isGroup(element)) {
    if (element.shape?.length !== 2) {
      throw new Error(`${name}: X has shape (${element.shape?.join(", ") ?? ""}); it should be a matrix of numbers`);
    }
    checkNumbers(element, name);
    return dense(element);
  }
  const kind = String(attribute(element, "encoding-type") ?? "");
  if (!/^cs[rc]/.test(kind)) throw new Error(`${name}: X is stored as '${kind}'; it should be dense, CSR or CSC`);
  checkNumbers(element.get("data"), name);
  return compressed(element, Array.from(attribute(element, "shape"), Number), kind.startsWith("csr"));
}

/** Whole numbers of 64 bits as doubles, other numbers as they are. */
function plain(numbers) {
  return numbers instanceof BigInt64Array || numbers instanceof BigUint64Array ? Float64Array.from(numbers, Number) : numbers;
}

/** Of each part the samples (all or some rows) by groups of columns, each added up to one. */
function readParts({ shape: [nRows, nColumns], stored, scan }, parts, progress) {
  const sums = parts.map(({ groups, rows }) => {
    const [row, column] = [new Int32Array(nRows).fill(-1), new Int32Array(nColumns).fill(-1)];
    if (rows) rows.forEach((i, k) => (row[i] = k));
    else row.forEach((_, i) => (row[i] = i));
    groups.forEach((group, k) => group.forEach((j) => (column[j] = k)));
    return { row, column, n: groups.length, values: emptyValues(stored, (rows?.length ?? nRows) * groups.length) };
  });
  const columns = [...new Set(parts.flatMap(({ groups }) => groups.flat()))];
  const wanted = new Uint8Array(nColumns);
  for (const j of columns) wanted[j] = 1;
  const add = (i, j, x) => {
    if (!(i >= 0 && i < nRows && j >= 0 && j < nColumns)) throw new Error("its sparse matrix has entries outside its shape");
    if (!wanted[j]) return;
    for (const { row, column, n, values } of sums) {
      if (row[i] >= 0 && column[j] >= 0) values[row[i] * n + column[j]] += x;
    }
  };
  const everyRow = parts.some(({ rows }) => rows === null);
  const rows = everyRow ? null : [...new Set(parts.flatMap((part) => part.rows))];
  scan(rows, columns, add, (seen, all) => progress("reading values", seen, all));
  return sums.map(({ values }) => values);
}

/** An array for sums: single precision where that loses nothing. */
function emptyValues({ size, type }, n) {
  return (type === 1 && size <= 4) || (type === 0 && size <= 2) ? new Float32Array(n) : new Float64Array(n);
}

/** A dense matrix: its shape, and what calls `add` with the values of some rows (null: all) and columns. */
function dense(element) {
  const [nRows, nColumns] = element.shape;
  const scan = (rows, columns, add, progress) => {
    const chunk = element.metadata.chunks?.[0] ?? 1;
    const few = Math.max(1, Math.floor(WHOLE / Math.max(1, nColumns)));
    const step = rows ? 1 : few - (few > chunk ? few % chunk : 0);
    const n = rows?.length ?? nRows;
    for (let at = 0; at < n; at += step) {
      const start = rows?.[at] ?? at;
      const stop = Math.min(start + step, nRows);
      const block = plain(element.slice([[start, stop], [0, nColumns]]));
      for (let row = start; row < stop; row++) {
        for (const column of columns) add(row, column, block[(row - start) * nColumns + column]);
      }
      progress(at + stop - start, n);
    }
  };
  return { shape: [nRows, nColumns], stored: element.metadata, scan };
}

/** The same of a sparse matrix by rows (CSR) or by columns (CSC). */
function compressed(element, shape, byRows) {
  const nLines = shape[byRows ? 0 : 1];
  const [data, indices] = [element.get("data"), element.get("indices")];
  const pointers = Array.from(element.get("indptr").value, Number);
  const n = data.shape[0];
  const falls = pointers.some((at, k) => k > 0 && at < pointers[k - 1]);
  const fits = pointers.length === nLines + 1 && pointers[0] === 0 && pointers.at(-1) === n;
  if (falls || !fits || indices.shape[0] !== n) throw new Error("the parts of its sparse matrix do not fit together");
  const scan = (rows, columns, add, progress) => {
    const lines = byRows ? rows : columns;
    const runs = lines ? lines.map((line) => [line, line + 1]) : [[0, nLines]];
    runs.forEach(([start, end], k) => {
      let line = start;
      for (const [first, stop] of spans(indices, pointers[start], pointers[end])) {
        const across = plain(indices.slice([[first, stop]]));
        const numbers = plain(data.slice([[first, stop]]));
        for (let e = 0; e < across.length; e++) {
          while (pointers[line + 1] <= first + e) line++;
          if (byRows) add(line, across[e], numbers[e]);
          else add(across[e], line, numbers[e]);
        }
        progress(lines ? k : stop, lines ? runs.length : n);
      }
    });
  };
  return { shape, stored: data.metadata, scan };
}

/** Entries from one to another, in spans that end where chunks do. */
function* spans(dataset, start, stop) {
  const length = dataset.metadata.chunks?.[0] ?? 1;
  const step = Math.max(1, Math.floor(SPAN / length)) * length;
  for (let first = start; first < stop; ) {
    const end = Math.min((Math.floor(first / step) + 1) * step, stop);
    yield [first, end];
    first = end;
  }
}
