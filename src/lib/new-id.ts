import { randomBytes } from "node:crypto";

const ALPHABET = "abcdefghijklmnopqrstuvwxyz234567";

/** A fresh id: prefix and 12 base-32 characters. */
export function newId(prefix: string): string {
  return `${prefix}_${[...randomBytes(12)].map((byte) => ALPHABET[byte & 31]).join("")}`;
}
