import { timingSafeEqual } from "node:crypto";
import { randomLetters } from "../../lib/new-id.ts";

/** Five bits each: 160 bits, and well within a label of a host name. */
const TOKEN_CHARS = 32;
const TOKEN = /^[a-z2-7]{26,63}$/;

/** What opens one preview: lower-case base 32, so that it can be a label of a host name. */
export function newPreviewToken(): string {
  return randomLetters(TOKEN_CHARS);
}

/** At least 130 bits, and a label. */
export function isPreviewToken(text: string): boolean {
  return TOKEN.test(text);
}

/** Says nothing about how much of it was right. */
export function tokenMatcher(token: string): (given: string) => boolean {
  const wanted = Buffer.from(token, "latin1");
  const room = Buffer.alloc(wanted.length);
  return (given) => given.length === wanted.length && room.write(given, "latin1") === wanted.length && timingSafeEqual(room, wanted);
}
