import { timingSafeEqual } from "node:crypto";
import { randomLetters } from "../../lib/new-id.ts";

/** Five bits each: 160 bits, well within the length of a host name label. */
const TOKEN_CHARS = 32;
const TOKEN = /^[a-z2-7]{26,63}$/;

/** Creates the token of one preview, in lower-case base 32, so that it can be a host name label. */
export function newPreviewToken(): string {
  return randomLetters(TOKEN_CHARS);
}

/** Checks that it has at least 130 bits and is a valid label. */
export function isPreviewToken(text: string): boolean {
  return TOKEN.test(text);
}

/** Compares in constant time, so that nothing reveals how much of a token was right. */
export function tokenMatcher(token: string): (candidate: string) => boolean {
  const wanted = Buffer.from(token, "latin1");
  const room = Buffer.alloc(wanted.length);
  return (candidate) =>
    candidate.length === wanted.length && room.write(candidate, "latin1") === wanted.length && timingSafeEqual(room, wanted);
}
