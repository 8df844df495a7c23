import { bad, bold, good, Line } from "./line.ts";
import type { Output } from "./output.ts";

/** Prints a patch: unchanged to a pipe; on a terminal with colors, and control characters escaped. */
export async function printDiff(output: Output, diff: Uint8Array): Promise<void> {
  if (!output.isTerminal) return await output.writeRaw(diff);
  const rows = Buffer.from(diff).toString("utf8").split("\n");
  // Text ends with a line break, after which there is no line.
  if (rows.at(-1) === "") rows.pop();
  await output.print(rows.map((row) => colorRow(row.replaceAll("\t", "    "))));
}

function colorRow(row: string): Line {
  if (row.startsWith("+") && !row.startsWith("+++")) return good(row);
  if (row.startsWith("-") && !row.startsWith("---")) return bad(row);
  return row.startsWith("@@") || row.startsWith("diff --git") ? bold(row) : Line.of([row]);
}
