// The lines of a text file, in chunks: plain or gzipped, UTF-8 or UTF-16; their fields as numbers.

const CHUNK = 1 << 22; // bytes read together
const NEWLINE = 10;
const RETURN = 13;
const QUOTE = 34;
const COMMA = 44;
const MINUS = 45;

async function* chunksOf(stream) {
  let parts = [];
  let size = 0;
  const reader = stream.getReader();
  for (let next = await reader.read(); !next.done; next = await reader.read()) {
    parts.push(next.value);
    size += next.value.length;
    if (size < CHUNK) continue;
    yield joined(parts, size);
    [parts, size] = [[], 0];
  }
  if (size) yield joined(parts, size);
}

function joined(parts, size) {
  if (parts.length === 1) return parts[0];
  const whole = new Uint8Array(size);
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

/** The bytes of a file as UTF-8 without its mark; `progress` hears of those that were read. */
async function* textChunks(file, progress) {
  let seen = 0;
  const counter = new TransformStream({
    transform(chunk, controller) {
      seen += chunk.length;
      progress(seen, file.size);
      controller.enqueue(chunk);
    },
  });
  const open = () => {
    const stream = file.stream();
    return file.name.toLowerCase().endsWith(".gz")
      ? stream.pipeThrough(counter).pipeThrough(new DecompressionStream("gzip"))
      : stream.pipeThrough(counter);
  };
  const decoded = (stream, encoding) =>
    stream.pipeThrough(new TextDecoderStream(encoding, { fatal: true })).pipeThrough(new TextEncoderStream());
  const encoding = await encodingOf(file);
  const stream = encoding === "utf-8" ? open() : decoded(open(), encoding);
  let first = true;
  for await (const chunk of chunksOf(stream)) {
    const marked = first && chunk[0] === 0xef && chunk[1] === 0xbb && chunk[2] === 0xbf;
    first = false;
    yield marked ? chunk.subarray(3) : chunk;
  }
}

/** UTF-16 by the mark at its beginning, else UTF-8. */
async function encodingOf(file) {
  let stream = file.slice(0, 1 << 16).stream();
  if (file.name.toLowerCase().endsWith(".gz")) {
    stream = stream.pipeThrough(new DecompressionStream("gzip"));
  }
  const reader = stream.getReader();
  const { value } = await reader.read();
  await reader.cancel().catch(() => {});
  const mark = value ? (value[0] << 8) | value[1] : 0;
  return mark === 0xfffe ? "utf-16le" : mark === 0xfeff ? "utf-16be" : "utf-8";
}

/** The lines of a file as bytes; a line end between quotes belongs to its line. */
export async function* linesOf(file, progress = () => {}) {
  let rest = new Uint8Array(0);
  let ending = 0;
  for await (const chunk of textChunks(file, progress)) {
    if (!ending) ending = chunk.includes(NEWLINE) || !chunk.includes(RETURN) ? NEWLINE : RETURN;
    const buffer = rest.length ? joined([rest, chunk], rest.length + chunk.length) : chunk;
    let start = 0;
    let from = 0;
    for (let end = buffer.indexOf(ending, from); end >= 0; end = buffer.indexOf(ending, from)) {
      const line = buffer.subarray(start, end);
      from = end + 1;
      if (hasOpenQuote(line)) continue;
      start = from;
      yield withoutReturn(line);
    }
    rest = buffer.slice(start);
  }
  if (rest.length) yield withoutReturn(rest);
}

const withoutReturn = (line) => (line.at(-1) === RETURN ? line.subarray(0, -1) : line);

function hasOpenQuote(line) {
  let open = false;
  for (let at = line.indexOf(QUOTE); at >= 0; at = line.indexOf(QUOTE, at + 1)) open = !open;
  return open;
}

const decoder = new TextDecoder("utf-8", { fatal: true });
// Characters of Windows-1252 from 0x80 on, where it differs from Latin-1
const WINDOWS = "€\ufffd‚ƒ„…†‡ˆ‰Š‹Œ\ufffdŽ\ufffd\ufffd‘’“”•–—˜™š›œ\ufffdžŸ";

/** The text of some bytes: UTF-8, and where bytes are none of it, Windows-1252. */
export function textOf(bytes) {
  let text;
  try {
    text = decoder.decode(bytes);
  } catch {
    text = mixedText(bytes);
  }
  if (text.includes("\0")) throw new Error("it is no text in UTF-8, UTF-16 or Windows-1252");
  return text;
}

/** Text whose bytes are characters of UTF-8, or else of Windows-1252, one by one. */
function mixedText(bytes) {
  let text = "";
  for (let at = 0; at < bytes.length; ) {
    const size = bytes[at] < 0x80 ? 1 : bytes[at] < 0xe0 ? 2 : bytes[at] < 0xf0 ? 3 : 4;
    try {
      text += decoder.decode(bytes.subarray(at, at + size));
      at += size;
    } catch {
      text += WINDOWS[bytes[at] - 0x80] ?? String.fromCharCode(bytes[at]);
      at++;
    }
  }
  return text;
}

/** The first field of a line as text. */
export function firstField(line, separator) {
  const end = line.indexOf(separator);
  return line[0] === QUOTE ? fieldTexts(line, separator)[0] : textOf(end < 0 ? line : line.subarray(0, end));
}

/** All fields of a line as texts; quotes around a field go, and doubled ones are one. */
export function fieldTexts(line, separator) {
  const text = textOf(line);
  const mark = String.fromCharCode(separator);
  if (!text.includes('"')) return text.split(mark);
  const fields = [];
  let field = "";
  let inside = false;
  for (let k = 0; k < text.length; k++) {
    const character = text[k];
    if (inside && character === '"' && text[k + 1] === '"') {
      field += '"';
      k++;
    } else if (character === '"' && (inside || field === "")) inside = !inside;
    else if (character === mark && !inside) {
      fields.push(field);
      field = "";
    } else field += character;
  }
  fields.push(field);
  return fields;
}

const POWERS = Float64Array.from({ length: 23 }, (_, k) => 10 ** k);
const NUMBER = /^[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?$/i;
const INFINITE = /^[-+]?inf(?:inity)?$/i;
const MISSING = new Set(["", "na", "nan", "n/a", "null", "none", ".", "-"]);

/** The number of a field's text: NaN where it is missing, undefined for a word. */
function numberOf(text, decimal) {
  let trimmed = text.trim();
  if (MISSING.has(trimmed.toLowerCase())) return NaN;
  if (decimal === COMMA) trimmed = trimmed.replace(",", ".");
  if (NUMBER.test(trimmed)) return Number(trimmed);
  if (INFINITE.test(trimmed)) return trimmed.startsWith("-") ? -Infinity : Infinity;
  return undefined;
}

/** The number in some bytes, exact as `Number` has it; NaN where it is missing, undefined for a word. */
function parseNumber(line, start, end, decimal) {
  let at = start;
  const negative = line[at] === MINUS;
  if (negative) at++;
  const first = at;
  let digits = 0;
  let count = 0;
  let point = -1;
  for (; at < end; at++) {
    const code = line[at];
    if (code >= 48 && code <= 57) {
      digits = digits * 10 + (code - 48);
      if (digits > 0) count++;
    } else if (code === decimal && point < 0) point = at;
    else break;
  }
  const power = point < 0 ? 0 : at - point - 1;
  const hasDigits = at - first > (point < 0 ? 0 : 1);
  if (at === end && hasDigits && count <= 15 && power <= 22) {
    const size = power ? digits / POWERS[power] : digits;
    return negative ? -size : size;
  }
  return numberOf(textOf(line.subarray(start, end)), decimal);
}

/**
 * Put the numbers of the fields of a line, but the first, into an array, NaN where they are missing.
 * Gives the number of fields, and those that are words, as positions and texts.
 */
export function parseFields(line, separator, decimal, numbers) {
  const words = [];
  const put = (k, number, text) => {
    if (number === undefined) words.push([k, text]);
    else numbers[k] = number;
  };
  if (line.includes(QUOTE)) {
    const texts = fieldTexts(line, separator);
    for (let k = 1; k < texts.length; k++) put(k, numberOf(texts[k], decimal), texts[k]);
    return { n: texts.length, words };
  }
  let n = 0;
  for (let start = 0; start <= line.length; n++) {
    const mark = line.indexOf(separator, start);
    const end = mark < 0 ? line.length : mark;
    if (n > 0) {
      const number = parseNumber(line, start, end, decimal);
      put(n, number, number === undefined ? textOf(line.subarray(start, end)) : "");
    }
    start = end + 1;
  }
  return { n, words };
}
