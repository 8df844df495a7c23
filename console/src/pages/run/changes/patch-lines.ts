import type { AppliedFile } from "../../../../../src/contract/session/session-verbs.ts";

/** Longer patches are unreadable on a page. */
const LINES_MAX = 5_000;

export interface PatchLine {
  sign: "added" | "removed" | "hunk" | "same";
  text: string;
}

/** Splits a file's patch into lines. Drops git's header before the first hunk, if there is a hunk. */
export function patchLines({ encoding, text }: NonNullable<AppliedFile["patch"]>): PatchLine[] {
  const lines = (encoding === "base64" ? decodeBase64(text) : text).replace(/\n$/, "").split("\n");
  const first = lines.findIndex((line) => line.startsWith("@@"));
  return lines.slice(Math.max(0, first), Math.max(0, first) + LINES_MAX).map((line) => ({ sign: signOf(line), text: line }));
}

function signOf(line: string): PatchLine["sign"] {
  if (line.startsWith("@@")) return "hunk";
  if (line.startsWith("+")) return "added";
  return line.startsWith("-") ? "removed" : "same";
}

/** Decodes text. Invalid UTF-8 becomes replacement characters. */
function decodeBase64(base64: string): string {
  return new TextDecoder().decode(Uint8Array.from(atob(base64), (character) => character.charCodeAt(0)));
}
