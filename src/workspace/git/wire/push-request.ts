import { CaissonError } from "../../../contract/error.ts";
import type { RefUpdate } from "../remote.ts";
import { FLUSH, lineText, pktLine, readPktLines } from "./pkt-line.ts";

const LINES_MAX = 10_000;

/**
 * The body of a push: each ref with the commit that it must be at and the one that it shall be at, then the pack. A
 * remote that can do all or nothing is asked for it.
 */
export function pushRequest(
  updates: readonly RefUpdate[],
  { pack, capabilities }: { pack: Buffer | null; capabilities: ReadonlySet<string> },
): Buffer {
  const hashLength = updates.flatMap(({ from, to }) => [from, to]).find((hash) => hash !== null)?.length ?? 40;
  const none = "0".repeat(hashLength);
  const wanted = ["report-status", ...["atomic"].filter((each) => capabilities.has(each)), "agent=caisson"];
  if (hashLength === 64) wanted.push("object-format=sha256");
  const lines = updates.map(({ ref, from, to }, index) =>
    pktLine(`${from ?? none} ${to ?? none} ${ref}${index === 0 ? `\0 ${wanted.join(" ")}` : ""}\n`),
  );
  return Buffer.concat([...lines, FLUSH, ...(pack === null ? [] : [pack])]);
}

/**
 * Reads the answer to a push. Throws `conflict` for a ref that the remote refused, with its words as data, `protocol`
 * for an answer that does not say of each ref what became of it. That it says `ok` proves nothing: read the refs.
 */
export function readPushReport(body: Buffer, updates: readonly RefUpdate[]): void {
  const { lines } = readPktLines(body, { linesMax: LINES_MAX });
  const texts = lines.flatMap((line) => (line === null ? [] : [lineText(line)]));
  const [unpacked] = texts;
  if (unpacked === undefined || !unpacked.startsWith("unpack "))
    throw new CaissonError("protocol", "the remote does not say what became of the push");
  const words = (text: string) => text.slice(0, 200);
  if (unpacked !== "unpack ok") throw refused(`the remote could not unpack what was pushed: ${words(unpacked.slice("unpack ".length))}`);
  for (const { ref } of updates) {
    const rejected = texts.find((text) => text.startsWith(`ng ${ref} `));
    if (rejected !== undefined) throw refused(`the remote refused ${ref}: ${words(rejected.slice(`ng ${ref} `.length))}`);
    if (!texts.includes(`ok ${ref}`)) throw new CaissonError("protocol", `the remote does not say what became of ${ref}`);
  }
}

function refused(message: string): CaissonError {
  return new CaissonError("conflict", message, { details: { refused: true } });
}
