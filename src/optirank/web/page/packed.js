// Data that the page holds gzipped, as text.

/** The bytes that a packed text (base64 of gzip) holds, as a response to read. */
export function unpackedBytes(text) {
  const packed = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  return new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip")));
}

/** The JSON that a packed text holds. */
export const unpacked = async (text) => JSON.parse(await unpackedBytes(text).text());
