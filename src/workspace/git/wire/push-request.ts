import { CaissonError } from "../../../contract/error/error.ts";
import type { RefUpdate } from "../remote.ts";
import { FLUSH, lineText, pktLine, readPktLines } from "./pkt-line.ts";

const LINES_MAX = 10_000;
/** The capability that separates the output of hooks from the report. */
const SIDE_BAND = "side-band-64k";
const REPORT = 1;
const WORDS = 2;
const FATAL = 3;
const SAID_CHARACTERS_MAX = 1000;

/**
 * Builds the body of a push: each ref with its old and new commit, then the pack. Requests an atomic push if the remote
 * supports it.
 */
export function pushRequest(
  updates: readonly RefUpdate[],
  { pack, capabilities }: { pack: Buffer | null; capabilities: ReadonlySet<string> },
): Buffer {
  const hashLength = updates.flatMap(({ from, to }) => [from, to]).find((hash) => hash !== null)?.length ?? 40;
  const none = "0".repeat(hashLength);
  const wanted = ["report-status", ...["atomic", SIDE_BAND].filter((each) => capabilities.has(each)), "agent=caisson"];
  if (hashLength === 64) wanted.push("object-format=sha256");
  const lines = updates.map(({ ref, from, to }, index) =>
    pktLine(`${from ?? none} ${to ?? none} ${ref}${index === 0 ? `\0 ${wanted.join(" ")}` : ""}\n`),
  );
  return Buffer.concat([...lines, FLUSH, ...(pack === null ? [] : [pack])]);
}

/**
 * Parses the answer to a push and returns the output of the remote's hooks. Throws `conflict` for a ref that the remote
 * refused, with its message as data, and `protocol` for an answer that does not report on each ref. An `ok` in it
 * proves nothing: read the refs.
 */
export function readPushReport(
  answer: Buffer,
  updates: readonly RefUpdate[],
  { clean = (text) => text }: { clean?: (text: string) => string } = {},
): { said: string } {
  const { report, words, fatal } = bandsOf(answer);
  const message = plainWords(clean(words));
  const quoted = message === "" ? "" : `; it says: ${message}`;
  if (fatal !== "") throw refusal(`the remote gave up: ${plainWords(clean(fatal))}${quoted}`);
  checkReport(report, updates, quoted);
  return { said: message };
}

/** Splits an answer into the report and the messages for people. */
function bandsOf(answer: Buffer): { report: Buffer; words: string; fatal: string } {
  const { lines } = readPktLines(answer, { linesMax: LINES_MAX });
  // Without side bands the answer begins with the report itself.
  if ((lines[0]?.[0] ?? FATAL + 1) > FATAL) return { report: answer, words: "", fatal: "" };
  const band = (wanted: number) => Buffer.concat(lines.flatMap((line) => (line !== null && line[0] === wanted ? [line.subarray(1)] : [])));
  const text = (bytes: Buffer) => bytes.subarray(0, 4 * SAID_CHARACTERS_MAX).toString("utf8");
  return { report: band(REPORT), words: text(band(WORDS)), fatal: text(band(FATAL)) };
}

/** Makes a message safe to show: one line, without control characters, of bounded length. */
function plainWords(text: string): string {
  return text
    .replace(/[\p{Cc}\p{Cf}\s]+/gu, " ")
    .trim()
    .slice(0, SAID_CHARACTERS_MAX);
}

function checkReport(report: Buffer, updates: readonly RefUpdate[], quoted: string): void {
  const { lines } = readPktLines(report, { linesMax: LINES_MAX });
  const texts = lines.flatMap((line) => (line === null ? [] : [lineText(line)]));
  const [unpacked] = texts;
  if (unpacked === undefined || !unpacked.startsWith("unpack "))
    throw new CaissonError("protocol", "the remote does not report the result of the push");
  const words = (text: string) => text.slice(0, 200);
  if (unpacked !== "unpack ok")
    throw refusal(`the remote could not unpack the pushed objects: ${words(unpacked.slice("unpack ".length))}${quoted}`);
  for (const { ref } of updates) {
    const rejected = texts.find((text) => text.startsWith(`ng ${ref} `));
    if (rejected !== undefined) throw refusal(`the remote refused ${ref}: ${words(rejected.slice(`ng ${ref} `.length))}${quoted}`);
    if (!texts.includes(`ok ${ref}`)) throw new CaissonError("protocol", `the remote does not report the result for ${ref}`);
  }
}

function refusal(message: string): CaissonError {
  return new CaissonError("conflict", message, { details: { refused: true } });
}
