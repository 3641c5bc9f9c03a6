// Elements of the page. Texts of files are only ever set as text, never as HTML.

import { printable } from "./text.js";

/** The element of the page with this id. */
export const byId = (id) => document.getElementById(id);

/** An element with properties and children; a child that is no element becomes text. */
export function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value);
  }
  made.append(...children.flat().map((child) => (child instanceof Node ? child : printable(String(child)))));
  return made;
}

export const button = (text, onclick, more = {}) => element("button", { type: "button", onclick, ...more }, text);

/** A table; `columns` are [heading, class: "text", "bar" or ""], `rows` arrays of texts or elements. */
export function plainTable(caption, columns, rows) {
  const cell = (tag, k, content) => element(tag, { class: columns[k][1] }, content);
  const head = columns.map(([name], k) => cell("th", k, name));
  const body = rows.map((row) => element("tr", {}, row.map((content, k) => cell("td", k, content))));
  return element(
    "div",
    { class: "wide", tabindex: "0", role: "region", "aria-label": caption },
    element("table", { "aria-label": caption }, element("thead", {}, element("tr", {}, head)), element("tbody", {}, body)),
  );
}

/** A bar with the length of a share of its track. */
export function bar(share, against = false) {
  const inside = element("i", { class: against ? "against" : "" });
  inside.style.width = `${100 * Math.min(1, Math.max(0, share))}%`;
  return element("span", { class: "track", "aria-hidden": "true" }, inside);
}

/** Tiles of a number and what it says. */
export const tiles = (pairs) =>
  element(
    "div",
    { class: "cards" },
    pairs.map(([number, what]) => element("div", { class: "card" }, element("b", {}, number), element("span", {}, what))),
  );

/** Names and texts, one below the other. */
export const facts = (pairs) =>
  element("dl", {}, pairs.flatMap(([name, text]) => [element("dt", {}, name), element("dd", {}, text)]));

/** Elements under a heading; nothing for none. */
export const section = (heading, ...children) => (children.length ? [element("h3", {}, heading), ...children] : []);

/** Sentences as a list under a heading; nothing for none. */
export const sentences = (heading, texts) =>
  texts.length ? section(heading, element("ul", {}, texts.map((text) => element("li", {}, text)))) : [];

/** Warnings in boxes. */
export const boxes = (texts) => texts.map((text) => element("p", { class: "box bad" }, text));

/** Give the reader a file to save. */
export function save(name, parts, type) {
  const address = URL.createObjectURL(new Blob(parts, { type }));
  element("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}
