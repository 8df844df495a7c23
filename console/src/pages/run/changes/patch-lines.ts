import type { AppliedFile } from "../../../../../src/contract/session-verbs.ts";

/** More is nothing to read on a page. */
const LINES_MAX = 5_000;

export interface PatchLine {
  sign: "added" | "removed" | "hunk" | "same";
  text: string;
}

/** A file's patch line by line, without what git says about the file before its first hunk where there is one. */
export function patchLines({ encoding, text }: NonNullable<AppliedFile["patch"]>): PatchLine[] {
  const lines = (encoding === "base64" ? decoded(text) : text).replace(/\n$/, "").split("\n");
  const first = lines.findIndex((line) => line.startsWith("@@"));
  return lines.slice(Math.max(0, first), Math.max(0, first) + LINES_MAX).map((line) => ({ sign: signOf(line), text: line }));
}

function signOf(line: string): PatchLine["sign"] {
  if (line.startsWith("@@")) return "hunk";
  if (line.startsWith("+")) return "added";
  return line.startsWith("-") ? "removed" : "same";
}

/** What is no whole UTF-8 is shown with marks where it is not. */
function decoded(base64: string): string {
  return new TextDecoder().decode(Uint8Array.from(atob(base64), (character) => character.charCodeAt(0)));
}
