// How Python writes numbers and names: the page says what the command says, to the letter.

/** A number with so many digits after the point; a tie goes to the even digit. */
export function fixed(x, digits) {
  if (!Number.isFinite(x)) return Number.isNaN(x) ? "nan" : x > 0 ? "inf" : "-inf";
  const rounded = x.toFixed(digits);
  if (Math.abs(x) >= 1e21) return rounded;
  const exact = x.toFixed(100);
  const end = exact.indexOf(".") + (digits ? digits + 1 : 0);
  const rest = exact.slice(digits ? end : end + 1);
  if (!/^50*$/.test(rest)) return rounded;
  const below = exact.slice(0, end);
  return Number(below.at(-1)) % 2 === 0 ? below : rounded;
}

/** A share such as 12.5%, as `f"{share:.1%}"` writes it. */
export const share = (x, digits) => `${fixed(100 * x, digits)}%`;

/** A share such as 91.3 %, with a dash for none. */
export const percent = (x) => (Number.isFinite(x) ? `${fixed(100 * x, 1)} %` : "–");

/** A number with so many significant digits, as `f"{x:.6g}"` writes it. */
export function general(x, digits = 6) {
  if (!Number.isFinite(x)) return fixed(x, 0);
  if (x === 0) return "0";
  const [mantissa, exponent] = x.toExponential(digits - 1).split("e");
  const power = Number(exponent);
  const bare = (text) => (text.includes(".") ? text.replace(/\.?0+$/, "") : text);
  if (power >= -4 && power < digits) return bare(x.toFixed(digits - 1 - power));
  const size = String(Math.abs(power)).padStart(2, "0");
  return `${bare(mantissa)}e${power < 0 ? "-" : "+"}${size}`;
}

/** A number with its sign, such as +0.25. */
export const signed = (x, digits) => (x < 0 || Object.is(x, -0) ? "" : "+") + fixed(x, digits);

/** A whole number with commas, such as 50,000. */
export const thousands = (n) => String(n).replace(/\B(?=(\d{3})+$)/g, ",");

/** A number with the words that agree with it: 1 sample is, 2 samples are. */
export const counted = (n, singular, plural) => `${n} ${n === 1 ? singular : plural}`;

const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;

function escaped(character) {
  if (character === "\n" || character === "\t") return character;
  if (character === "\r") return "\\r";
  const code = character.codePointAt(0);
  const hex = code.toString(16);
  if (code < 0x100) return `\\x${hex.padStart(2, "0")}`;
  return code < 0x10000 ? `\\u${hex.padStart(4, "0")}` : `\\U${hex.padStart(8, "0")}`;
}

/** A text whose control characters are written as escapes, cut to a length. */
export function printable(text, limit = Infinity) {
  let shown = text;
  if (text.length > limit) {
    const characters = [...text];
    if (characters.length > limit) {
      shown = `${characters.slice(0, limit).join("")}... (${characters.length} characters)`;
    }
  }
  return shown.replace(UNPRINTABLE, escaped);
}

/** The first names of a list, and how many more there are; "none" for an empty list. */
export function some(names, limit = 8) {
  if (!names.length) return "none";
  const shown = names.slice(0, limit).map((name) => printable(String(name), 100));
  const more = names.length > limit ? ` and ${names.length - limit} more` : "";
  return shown.join(", ") + more;
}

/** A text in quotes, as Python's `repr` writes it. */
export function quoted(text) {
  const mark = text.includes("'") && !text.includes('"') ? '"' : "'";
  const inside = text
    .replaceAll("\\", "\\\\")
    .replaceAll(mark, `\\${mark}`)
    .replaceAll("\n", "\\n")
    .replaceAll("\t", "\\t")
    .replace(UNPRINTABLE, escaped);
  return mark + inside + mark;
}

/** A name without blanks around it; one of blanks alone stays. */
export const stripped = (name) => name.trim() || name;

/** A name of a table: without blanks around it, letters with accents as single characters. */
export const plainName = (name) => stripped(name.normalize("NFC"));

/** The names that occur more than once, in the order of their first occurrence. */
export function duplicates(names) {
  const counts = new Map();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return [...counts].filter(([, n]) => n > 1).map(([name]) => name);
}

/** What reads a file; an error that does not name it says that it may be damaged. */
export async function readable(name, read) {
  try {
    return await read();
  } catch (error) {
    const text = String(error?.message ?? error);
    if (text.includes(name)) throw error;
    const short = text.split(/\s+/).join(" ").slice(0, 300);
    throw new Error(
      `${name} cannot be read, it may be truncated or damaged: ${short} (copy or fetch it again)`,
    );
  }
}

/** A note on names that several samples have. */
export function repeatedSamples(names) {
  const repeated = duplicates(names);
  const what = counted(repeated.length, "sample name occurs", "sample names occur");
  return repeated.length ? [`${what} more than once: ${some(repeated)}`] : [];
}
