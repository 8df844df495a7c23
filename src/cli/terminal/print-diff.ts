import { bad, bold, good, Line } from "./line.ts";
import type { Output } from "./output.ts";

/**
 * A patch for whoever reads our pipe, byte for byte; on a terminal in colours, with everything in it visible that the
 * terminal would obey.
 */
export async function printDiff(output: Output, diff: Uint8Array): Promise<void> {
  if (!output.isTerminal) return await output.writeRaw(diff);
  const rows = Buffer.from(diff).toString("utf8").split("\n");
  // Text ends with a line break, and what comes after the last one is no line.
  if (rows.at(-1) === "") rows.pop();
  await output.print(rows.map((row) => coloured(row.replaceAll("\t", "    "))));
}

function coloured(row: string): Line {
  if (row.startsWith("+") && !row.startsWith("+++")) return good(row);
  if (row.startsWith("-") && !row.startsWith("---")) return bad(row);
  return row.startsWith("@@") || row.startsWith("diff --git") ? bold(row) : Line.of([row]);
}
