// Files of HDF5: AnnData (.h5ad) and 10x (.h5), read in parts with h5wasm in a worker.

import { genesAmong, nameWarnings } from "./features.js";
import { plainGeneNames } from "./spelling.js";
import { repeatedSamples } from "./tables.js";
import { readable, some, stripped } from "./text.js";

const SPAN = 1 << 20; // entries read together
const WHOLE = 16_000_000; // values of whole rows read together: 64 MB in single precision
const FOLDER = "/query";

/** Open an .h5ad or 10x .h5: the source that `label` takes; `options` has layer, useRaw, geneColumn. */
export async function openHdf5(file, known, options) {
  const { FS } = await globalThis.h5wasm.ready;
  if (!FS.analyzePath(FOLDER).exists) FS.mkdir(FOLDER);
  else FS.unmount(FOLDER);
  // A name of our own: that of the file may hold anything
  FS.mount(FS.filesystems.WORKERFS, { blobs: [{ name: "file", data: file }] }, FOLDER);
  const mark = new Uint8Array(await file.slice(0, 8).arrayBuffer());
  if (![137, 72, 68, 70, 13, 10, 26, 10].every((byte, k) => mark[k] === byte)) {
    throw new Error(
      `${file.name} is not an HDF5 file: give its format (such as 'table'), or fetch it again if ` +
        "it should be one",
    );
  }
  const root = await readable(file.name, () => new globalThis.h5wasm.File(`${FOLDER}/file`, "r"));
  return readable(file.name, () => {
    if (root.file_id < 0) throw new Error("its HDF5 does not open");
    return file.name.toLowerCase().endsWith(".h5ad") ? anndata(root, file.name, known, options) : tenx(root, file.name);
  });
}

const isGroup = (element) => typeof element?.keys === "function";
const attribute = (element, name) => element.attrs[name]?.value;

function anndata(root, name, known, asked) {
  const keys = root.keys();
  const lacking = ["X", "obs", "var"].filter((key) => !keys.includes(key));
  const xAlone = lacking.length === 1 && lacking[0] === "X";
  if (lacking.length && !(xAlone && (asked.layer || asked.useRaw))) {
    const hint = keys.includes("matrix") ? ": it looks like 10x, use format='10x_h5'" : "";
    throw new Error(`${name} is not an AnnData file: it has no ${lacking.join(" and no ")}${hint}`);
  }
  const samples = indexOf(root, "obs", name);
  const raw = rawGroup(root);
  const given = { layer: asked.layer || null, use_raw: asked.useRaw || null };
  const note = rawNote(root, raw, known, asked, name);
  const options = note === null ? asked : { ...asked, useRaw: true };
  const { element, features } = chosenMatrix(root, raw, name, options);
  const { index, columns } = frame(features, "var", name);
  const rawGenes = raw === null || options.useRaw ? null : indexOf(raw, "var", name).map(stripped);
  const layers = keys.includes("layers") ? root.get("layers").keys() : [];
  const source = sourceOf(name, matrixOf(element, name), index, columns, samples, rawGenes, options, given);
  if (note !== null) source.notes.unshift(note);
  return { ...source, layers, hasRaw: raw !== null, geneColumns: Object.keys(columns) };
}

const ENOUGH = 0.9; // share of the known genes above which X is used as it is

/** Why raw is read although nobody asked for it, or null where it is not. */
function rawNote(root, raw, names, options, name) {
  if (raw === null || options.useRaw || options.layer || options.geneColumn || !isGroup(root.get("var"))) return null;
  const known = new Set(names.map((gene) => gene.toLowerCase()));
  const found = (group) => {
    const genes = new Set(indexOf(group, "var", name).map((gene) => gene.trim().toLowerCase()));
    return [...known].filter((gene) => genes.has(gene)).length;
  };
  const [inX, inRaw] = [found(root), found(raw)];
  if (!known.size || inX > ENOUGH * known.size || inRaw - inX < (known.size - inX) / 2) return null;
  return `raw is read: X has ${inX} of the ${known.size} genes of the model, raw has ${inRaw}`;
}

/** The element with the values that were asked for, and the group that has its `var`. */
function chosenMatrix(root, raw, name, options) {
  if (options.useRaw) {
    if (options.layer) throw new Error(`${name}: raw and the layer '${options.layer}' are asked for: give one`);
    if (raw === null) throw new Error(`${name} has no raw (use_raw=True): use X or a layer`);
    return { element: raw.get("X"), features: raw };
  }
  if (!options.layer) return { element: root.get("X"), features: root };
  const layers = root.keys().includes("layers") ? root.get("layers") : null;
  if (!layers?.keys().includes(options.layer)) {
    throw new Error(`${name} has no layer '${options.layer}': there are ${some(layers?.keys() ?? [])}`);
  }
  return { element: layers.get(options.layer), features: root };
}

function rawGroup(root) {
  const raw = root.keys().includes("raw") ? root.get("raw") : null;
  if (!isGroup(raw)) return null;
  return raw.keys().includes("X") && raw.keys().includes("var") && isGroup(raw.get("var")) ? raw : null;
}

function tenx(root, name) {
  const keys = root.keys();
  const groups = keys.filter((key) => isGroup(root.get(key)) && root.get(key).keys().includes("indptr"));
  if (keys.includes("X") || !groups.length) {
    const hint = keys.includes("X") ? ": it looks like AnnData, use format='h5ad'" : "";
    throw new Error(`${name} is not a 10x file: it has no group with a matrix${hint}`);
  }
  if (groups.length > 1) throw new Error(`${name} holds several genomes, ${some(groups)}: split it first`);
  const group = root.get(groups[0]);
  const third = group.keys().includes("features");
  const id = texts(group.get(third ? "features/id" : "genes"));
  const named = texts(group.get(third ? "features/name" : "gene_names"));
  const typed = third && group.get("features").keys().includes("feature_type");
  const types = typed ? texts(group.get("features/feature_type")) : id.map(() => "Gene Expression");
  const cells = texts(group.get("barcodes"));
  checkNumbers(group.get("data"), name);
  const matrix = compressedRows(group, cells.length, id.length);
  const columns = { id, name: named, feature_types: types };
  return sourceOf(name, matrix, named, columns, cells, null, { geneColumn: null }, {});
}

function sourceOf(name, matrix, index, columns, samples, rawGenes, options, given) {
  if (matrix.shape[0] !== samples.length || matrix.shape[1] !== index.length) {
    throw new Error(
      `${name}: the matrix is ${matrix.shape[0]} x ${matrix.shape[1]}, but there are ` +
        `${samples.length} sample names, ${index.length} gene names and ${samples.length} rows of ` +
        "annotations",
    );
  }
  const spelled = options.geneColumn === null ? plainGeneNames(index.map(stripped)) : { names: index, notes: [] };
  const { kept, genes, others, notes } = genesAmong(name, spelled.names, columns, options.geneColumn);
  return {
    name,
    genes,
    others,
    rawGenes,
    notes: [...spelled.notes, ...notes, ...repeatedSamples(samples)],
    warnings: nameWarnings(name, genes, null),
    genesIn: null,
    nSamples: samples.length,
    samples,
    options: { ...given, gene_column: options.geneColumn },
    read: (parts, progress) =>
      readable(name, () =>
        matrix.read(parts.map((part) => ({ ...part, groups: part.groups.map((group) => group.map((k) => kept[k])) })), progress),
      ),
  };
}

function indexOf(group, key, name) {
  const element = group.get(key);
  if (!isGroup(element)) refuseOld(key, name);
  return texts(element.get(attribute(element, "_index") ?? "_index"));
}

function refuseOld(key, name) {
  throw new Error(
    `${name}: its '${key}' was written by anndata before 0.7; open it with anndata.read_h5ad and ` +
      "write it again",
  );
}

/** The names of a table's lines, and its columns of text. */
function frame(group, key, name) {
  const index = indexOf(group, key, name);
  const element = group.get(key);
  const columns = {};
  for (const column of [attribute(element, "column-order") ?? []].flat()) {
    const values = textColumn(element.get(column));
    if (values !== null) columns[column] = values;
  }
  return { index, columns };
}

/** A column as texts, "nan" where a value is missing; null for numbers. */
function textColumn(element) {
  const kind = attribute(element, "encoding-type");
  if (kind === "categorical") {
    const categories = texts(element.get("categories"));
    return Array.from(element.get("codes").value, (code) => (code < 0 ? "nan" : categories[code]));
  }
  if (kind === "nullable-string-array") {
    const missing = element.get("mask").value;
    return texts(element.get("values")).map((text, k) => (missing[k] ? "nan" : text));
  }
  return kind === "string-array" ? texts(element) : null;
}

/** A data set as texts; numbers as they are written. */
function texts(dataset) {
  return Array.from(dataset.value ?? [], String);
}

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
    if (attribute(element, "encoding-type") === "null" || !element.shape) {
      throw new Error(`${name} holds no X: name one of its layers (layer=)`);
    }
    if (element.shape.length !== 2) {
      throw new Error(`${name}: X has shape (${element.shape.join(", ")}); it should be a matrix of numbers`);
    }
    checkNumbers(element, name);
    return denseRows(element);
  }
  const kind = String(attribute(element, "encoding-type") ?? "");
  checkNumbers(element.get("data"), name);
  const [rows, columns] = Array.from(attribute(element, "shape") ?? [0, 0], Number);
  if (kind.startsWith("csr")) return compressedRows(element, rows, columns);
  if (kind.startsWith("csc")) return compressedColumns(element, rows, columns);
  throw new Error(`${name}: X is stored as '${kind}'; it should be dense, CSR or CSC`);
}

/** Whole numbers of 64 bits as doubles, other numbers as they are. */
function plain(numbers) {
  if (!(numbers instanceof BigInt64Array || numbers instanceof BigUint64Array)) return numbers;
  const halves = new Int32Array(numbers.buffer, numbers.byteOffset, 2 * numbers.length);
  const doubles = new Float64Array(numbers.length);
  for (let k = 0; k < doubles.length; k++) doubles[k] = halves[2 * k + 1] * 2 ** 32 + (halves[2 * k] >>> 0);
  return doubles;
}

/** The group that each column is added to, -1 for none. */
function targetsOf(groups, nColumns) {
  const first = new Int32Array(nColumns).fill(-1);
  groups.forEach((group, k) => group.forEach((column) => (first[column] = k)));
  return first;
}

/** An array for values of samples by groups: single precision where that loses nothing. */
function emptyValues(metadata, n) {
  const { size, type } = metadata;
  return (type === 1 && size <= 4) || (type === 0 && size <= 2) ? new Float32Array(n) : new Float64Array(n);
}

/** The parts that are read, each with an array for its values, and where its samples go. */
function startedParts(parts, metadata, nRows) {
  return parts.map(({ groups, rows }) => ({
    groups,
    rows,
    place: rows && new Map(rows.map((row, k) => [row, k])),
    values: emptyValues(metadata, (rows?.length ?? nRows) * groups.length),
  }));
}

/** Where a row of the file is among the samples of a part; undefined where it is not. */
const placeIn = (part, row) => (part.place ? part.place.get(row) : row);

/** The rows to read: all, or those of the parts where no part has all. */
const rowsOf = (parts) =>
  parts.some(({ rows }) => rows === null) ? null : [...new Set(parts.flatMap(({ rows }) => rows))];

function denseRows(element) {
  const [nRows, nColumns] = element.shape;
  return {
    shape: [nRows, nColumns],
    read(parts, progress) {
      const started = startedParts(parts, element.metadata, nRows);
      const rows = rowsOf(parts);
      const n = rows?.length ?? nRows;
      const chunk = element.metadata.chunks?.[0] ?? 1;
      const few = Math.max(1, Math.floor(WHOLE / Math.max(1, nColumns)));
      const step = rows === null ? few - (few > chunk ? few % chunk : 0) : 1;
      for (let at = 0; at < n; at += step) {
        const start = rows?.[at] ?? at;
        const stop = Math.min(start + step, nRows);
        const block = plain(element.slice([[start, stop], [0, nColumns]]));
        for (let row = start; row < stop; row++) {
          const from = (row - start) * nColumns;
          for (const part of started) {
            const place = placeIn(part, row);
            if (place === undefined) continue;
            part.groups.forEach((group, k) => {
              for (const column of group) part.values[place * part.groups.length + k] += block[from + column];
            });
          }
        }
        progress("reading values", at + stop - start, n);
      }
      return started.map(({ values }) => values);
    },
  };
}

function pointersOf(parts, count) {
  const pointers = Array.from(parts.get("indptr").value, Number);
  const falls = pointers.some((at, k) => k > 0 && at < pointers[k - 1]);
  const n = parts.get("data").shape[0];
  const fits = pointers.length === count + 1 && pointers[0] === 0 && pointers.at(-1) === n;
  if (falls || !fits || parts.get("indices").shape[0] !== n) {
    throw new Error("the parts of its sparse matrix do not fit together");
  }
  return pointers;
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

function refuseOutside() {
  throw new Error("its sparse matrix has entries outside its shape");
}

function compressedRows(element, nRows, nColumns) {
  const pointers = pointersOf(element, nRows);
  const [data, indices] = [element.get("data"), element.get("indices")];
  return {
    shape: [nRows, nColumns],
    read(parts, progress) {
      const started = startedParts(parts, data.metadata, nRows);
      const targets = started.map(({ groups }) => targetsOf(groups, nColumns));
      const rows = rowsOf(parts);
      const runs = rows === null ? [[0, nRows]] : rows.map((row) => [row, row + 1]);
      for (const [from, to] of runs) {
        let row = from;
        let places = started.map((part) => placeIn(part, row));
        for (const [first, stop] of spans(indices, pointers[from], pointers[to])) {
          const columns = plain(indices.slice([[first, stop]]));
          const numbers = plain(data.slice([[first, stop]]));
          for (let e = 0; e < columns.length; e++) {
            if (pointers[row + 1] <= first + e) {
              while (pointers[row + 1] <= first + e) row++;
              places = started.map((part) => placeIn(part, row));
            }
            const column = columns[e];
            if (!(column >= 0 && column < nColumns)) refuseOutside();
            for (let p = 0; p < started.length; p++) {
              const k = targets[p][column];
              if (k >= 0 && places[p] !== undefined) {
                started[p].values[places[p] * started[p].groups.length + k] += numbers[e];
              }
            }
          }
          progress("reading values", stop, pointers[nRows]);
        }
      }
      return started.map(({ values }) => values);
    },
  };
}

function compressedColumns(element, nRows, nColumns) {
  const pointers = pointersOf(element, nColumns);
  const [data, indices] = [element.get("data"), element.get("indices")];
  return {
    shape: [nRows, nColumns],
    read(parts, progress) {
      const started = startedParts(parts, data.metadata, nRows);
      const n = started.reduce((sum, { groups }) => sum + groups.length, 0);
      let done = 0;
      for (const part of started) {
        part.groups.forEach((group, k) => {
          for (const column of group) {
            for (const [first, stop] of spans(indices, pointers[column], pointers[column + 1])) {
              const inRows = plain(indices.slice([[first, stop]]));
              const numbers = plain(data.slice([[first, stop]]));
              for (let e = 0; e < inRows.length; e++) {
                if (!(inRows[e] >= 0 && inRows[e] < nRows)) refuseOutside();
                const place = placeIn(part, inRows[e]);
                if (place !== undefined) part.values[place * part.groups.length + k] += numbers[e];
              }
            }
          }
          progress("reading values", ++done, n);
        });
      }
      return started.map(({ values }) => values);
    },
  };
}
