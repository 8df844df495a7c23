/** What the page can show of a file. */
export type Contents =
  | { kind: "text"; text: string; canEdit: boolean; note: string | null }
  | { kind: "picture"; type: string; bytes: Uint8Array }
  | { kind: "binary" };

export const SHOWN_BYTES_MAX = 2 * 1024 * 1024;
export const PICTURE_BYTES_MAX = 20 * 1024 * 1024;
const LOOKED_AT_BYTES = 8192;

const pictures: Readonly<Record<string, string>> = {
  png: "image/png",
  jpg: "image/jpeg",
  jpeg: "image/jpeg",
  gif: "image/gif",
  webp: "image/webp",
  avif: "image/avif",
  ico: "image/x-icon",
};

export function pictureType(name: string): string | null {
  return pictures[name.slice(name.lastIndexOf(".") + 1).toLowerCase()] ?? null;
}

/** Classifies a file by its name and content. Only text that would be written back byte for byte can be edited. */
export function contentsOf(name: string, bytes: Uint8Array, { sizeBytes }: { sizeBytes: number }): Contents {
  const type = pictureType(name);
  if (type !== null && sizeBytes <= PICTURE_BYTES_MAX) return { kind: "picture", type, bytes };
  if (bytes.subarray(0, LOOKED_AT_BYTES).includes(0)) return { kind: "binary" };
  const isCut = bytes.length < sizeBytes || bytes.length > SHOWN_BYTES_MAX;
  const shownBytes = bytes.subarray(0, SHOWN_BYTES_MAX);
  if (isCut)
    return {
      kind: "text",
      text: new TextDecoder().decode(shownBytes),
      canEdit: false,
      note: "Too long to edit here. Only the beginning is shown.",
    };
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(shownBytes);
    // The editor supports one kind of line ending per file.
    const isMixed = /\r/.test(text.replaceAll("\r\n", "")) || (text.includes("\r\n") && /(?<!\r)\n/.test(text));
    if (isMixed) return { kind: "text", text, canEdit: false, note: "Mixed line endings, so it cannot be edited here." };
    return { kind: "text", text, canEdit: true, note: null };
  } catch {
    return {
      kind: "text",
      text: new TextDecoder().decode(shownBytes),
      canEdit: false,
      note: "Not UTF-8, so it cannot be edited here. Some characters may be wrong.",
    };
  }
}
