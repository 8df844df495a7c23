import type { ChangedFile } from "../../contract/session/session-verbs.ts";
import { bad, good, line, quotedName } from "../terminal/line.ts";
import type { Cell } from "../terminal/table.ts";

/** Formats a file's change as a table row. */
export function changedFileRow(file: ChangedFile): Cell[] {
  const lines = file.binary ? "binary" : line`${good(`+${file.linesAdded}`)} ${bad(`−${file.linesRemoved}`)}`;
  return [`  ${file.kind}`, quotedName(file.path), lines];
}
