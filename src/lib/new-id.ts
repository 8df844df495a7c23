import { randomBytes } from "node:crypto";

const ALPHABET = "abcdefghijklmnopqrstuvwxyz234567";
const ID_LETTERS = 12;

/** A fresh id: prefix and 12 base-32 letters. */
export function newId<Prefix extends string>(prefix: Prefix): `${Prefix}_${string}` {
  return `${prefix}_${randomLetters(ID_LETTERS)}`;
}

/** The id that these bytes always give; only as hard to guess as they are. */
export function idFrom<Prefix extends string>(prefix: Prefix, bytes: Uint8Array): `${Prefix}_${string}` {
  return `${prefix}_${lettersOf(bytes.subarray(0, ID_LETTERS))}`;
}

/** Five bits of chance each. Lower case and digits: fit for file names and labels of host names. */
export function randomLetters(count: number): string {
  return lettersOf(randomBytes(count));
}

function lettersOf(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => ALPHABET[byte & 31]).join("");
}
