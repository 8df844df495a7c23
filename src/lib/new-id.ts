import { randomBytes } from "node:crypto";

const ALPHABET = "abcdefghijklmnopqrstuvwxyz234567";
const ID_LETTERS = 12;

/** Returns a fresh id: the prefix and 12 base-32 letters. */
export function newId<Prefix extends string>(prefix: Prefix): `${Prefix}_${string}` {
  return `${prefix}_${randomLetters(ID_LETTERS)}`;
}

/** Derives the same id from the same bytes. The id is no harder to guess than the bytes. */
export function idFrom<Prefix extends string>(prefix: Prefix, bytes: Uint8Array): `${Prefix}_${string}` {
  return `${prefix}_${lettersOf(bytes.subarray(0, ID_LETTERS))}`;
}

/** Five random bits per character. Lower case and digits: valid in file names and host name labels. */
export function randomLetters(count: number): string {
  return lettersOf(randomBytes(count));
}

function lettersOf(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => ALPHABET[byte & 31]).join("");
}
