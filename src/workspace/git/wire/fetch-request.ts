import { CaissonError } from "../../../contract/error/error.ts";
import { FLUSH, lineText, pktLine, readPktLines } from "./pkt-line.ts";

const LINES_MAX = 10_000;

/** Builds the body that requests the history of these commits, without that of the commits we have. */
export function fetchRequest({ wants, haves }: { wants: readonly string[]; haves: readonly string[] }): Buffer {
  const isSha256 = wants[0]?.length === 64;
  const capabilities = ` ofs-delta no-progress agent=caisson${isSha256 ? " object-format=sha256" : ""}`;
  return Buffer.concat([
    ...wants.map((hash, index) => pktLine(`want ${hash}${index === 0 ? capabilities : ""}\n`)),
    FLUSH,
    ...haves.map((hash) => pktLine(`have ${hash}\n`)),
    pktLine("done\n"),
  ]);
}

/**
 * Returns the pack in the answer. Throws `protocol` for an answer without one, `conflict` with the remote's message.
 */
export function readFetchedPack(body: Buffer): Buffer {
  const { lines, rest } = readPktLines(body, {
    linesMax: LINES_MAX,
    until: (line) => line !== null && /^(?:NAK|ACK [0-9a-f]{40,64})$/.test(lineText(line)),
  });
  for (const line of lines) {
    const text = line === null ? "" : lineText(line);
    if (text.startsWith("ERR ")) throw new CaissonError("conflict", `the remote refused the fetch: ${text.slice(4, 204)}`);
  }
  if (rest.toString("latin1", 0, 4) !== "PACK") throw new CaissonError("protocol", "the remote's answer contains no pack");
  return rest;
}
