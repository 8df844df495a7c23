/**
 * The forms in which a server or a program passes a value on: unchanged, in base64 at each of the three possible
 * offsets (which finds Basic credentials), in base64url, in hexadecimal, percent-encoded, and as part of a JSON string.
 *
 * This cannot find a value that is split (two requests, a range, one character per line, base64 with line breaks),
 * compressed, encrypted, hashed, reversed, rotated, in UTF-16, or encoded twice. An attacker who can run code on both
 * sides of a connection can always pass a value on. This is for the servers and programs that do so unintentionally.
 * Base64 shares up to four bits of the first and last byte with the neighbors, and those remain.
 */
const encodings: readonly ((text: string) => string)[] = [
  (text) => text,
  ...[0, 1, 2].flatMap((shift) => [
    (text: string) => base64Within(text, shift),
    (text: string) => base64Within(text, shift).replaceAll("+", "-").replaceAll("/", "_"),
  ]),
  (text) => Buffer.from(text).toString("hex"),
  (text) => Buffer.from(text).toString("hex").toUpperCase(),
  ...[percent, percentButSlash, formEncoded, encodeURIComponent, encodeURI].flatMap((encode) => [
    encode,
    (text: string) => encode(text).replaceAll(/%[0-9A-F]{2}/g, (code) => code.toLowerCase()),
  ]),
  jsonEscaped,
  (text) => jsonEscaped(text).replaceAll("/", "\\/"),
  (text) => jsonEscaped(text).replaceAll(/[<>&]/g, (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, "0")}`),
];

/** Returns each distinct form of a value, with the same form of its replacement. Both are ASCII. */
export function encodedForms(value: string, stand: string): { pattern: string; stand: string }[] {
  const forms = new Map<string, string>();
  for (const encode of encodings) {
    const pattern = encode(value);
    if (!forms.has(pattern)) forms.set(pattern, encode(stand));
  }
  return [...forms].map(([pattern, form]) => ({ pattern, stand: form }));
}

/** Returns the base64 characters that depend on the text alone if it begins `shift` bytes after a multiple of three. */
function base64Within(text: string, shift: number): string {
  const bytes = Buffer.concat([Buffer.alloc(shift), Buffer.from(text)]);
  return bytes.toString("base64").slice(Math.ceil((shift * 8) / 6), Math.floor((bytes.length * 8) / 6));
}

/** Encodes all but letters, digits and `-._~` (RFC 3986). */
function percent(text: string): string {
  return encodeURIComponent(text).replaceAll(/[!'()*]/g, (letter) => `%${letter.charCodeAt(0).toString(16).toUpperCase()}`);
}

function percentButSlash(text: string): string {
  return percent(text).replaceAll("%2F", "/");
}

/** Encodes as application/x-www-form-urlencoded. */
function formEncoded(text: string): string {
  return percent(text).replaceAll("%20", "+").replaceAll("%2A", "*").replaceAll("~", "%7E");
}

function jsonEscaped(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}
