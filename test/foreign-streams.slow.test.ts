import { buffer } from "node:stream/consumers";
import { describe, test } from "vitest";
import { createTransport } from "../src/agent/tools/mcp.ts";
import { completeInput } from "../src/cli/chat/complete-input.ts";
import { deleteWordLeft, insert, moveLine, moveWordLeft, moveWordRight, withText } from "../src/cli/chat/edit-text.ts";
import { inputRows } from "../src/cli/chat/input-rows.ts";
import { createKeyDecoder } from "../src/cli/chat/key-decoder.ts";
import { lines as linesOf } from "../src/cli/terminal/line.ts";
import { createMarkdownView } from "../src/cli/terminal/markdown.ts";
import { table } from "../src/cli/terminal/table.ts";
import { eventsIn } from "../src/client/event-stream.ts";
import { createSseSplitter } from "../src/network/gateway/sse-splitter.ts";
import { createAnswerRedactor } from "../src/network/secrets/answer-redactor.ts";
import { createRedactor } from "../src/network/secrets/redactor.ts";
import { encodeTarHeader, tarEnd } from "../src/sandbox/tar/tar-header.ts";
import { readRawTar } from "../src/sandbox/tar/tar-reader.ts";
import { createGitProgress } from "../src/workspace/git/git-progress.ts";
import { expectLinearCost, type Read } from "./support/growing-cost.ts";

/** As small as a network's chunks: a reader with a buffer must not search the whole buffer again for each. */
const CHUNK_CHARACTERS = 64;

function* chunksOf(text: string): Generator<string> {
  for (let at = 0; at < text.length; at += CHUNK_CHARACTERS) yield text.slice(at, at + CHUNK_CHARACTERS);
}

const drain = async (items: AsyncIterable<unknown>) => {
  for await (const _ of items);
};

/** Half of each value is one character, so text of that character almost matches all the time. */
const values = ["a", "0", " ", "/", "<"].map((piece, index) => ({ name: `S${index}`, value: `${piece.repeat(50)}!${piece.repeat(50)}` }));
const secrets = createRedactor({ version: () => 1, values: () => values });
const answers = createAnswerRedactor(values.map(({ value }) => ({ value, placeholder: "x".repeat(value.length) })));

async function through(transform: NodeJS.ReadWriteStream, text: string): Promise<void> {
  const out = buffer(transform);
  for (const chunk of chunksOf(text)) transform.write(Buffer.from(chunk));
  transform.end();
  await out;
}

/** Everything that reads foreign text in pieces, and everything that draws it. Add new readers here. */
const readers: Readonly<Record<string, Read>> = {
  "station events": (text) =>
    drain(eventsIn({ body: ReadableStream.from([...chunksOf(`data: ${text}\n\n`)].map((each) => Buffer.from(each))) })),
  "provider events": (text) => {
    const splitter = createSseSplitter({ eventBytesMax: 1_000_000 });
    for (const chunk of chunksOf(`data: ${text}\n\n`)) splitter.push(Buffer.from(chunk));
    return splitter.rest();
  },
  "messages of an MCP server": async (text) => {
    const { promise, resolve } = Promise.withResolvers<void>();
    async function* output() {
      for (const chunk of chunksOf(`${text}\n{}\n`)) {
        yield { stream: "stderr" as const, data: Buffer.from(chunk), offset: 0 };
        yield { stream: "stdout" as const, data: Buffer.from(chunk), offset: 0 };
      }
    }
    const transport = createTransport(
      { output: output(), write: async () => {}, closeStdin: async () => {}, kill: async () => {} },
      { text: "" },
    );
    transport.onclose = resolve;
    await transport.start();
    await promise;
  },
  "a name in an archive": (text) => {
    const header = { kind: "link" as const, mode: 0o777, sizeBytes: 0, modifiedMs: 0, linkTarget: text };
    return drain(readRawTar(ReadableStream.from([encodeTarHeader({ ...header, name: text }), tarEnd])));
  },
  "many headers of an archive": (text) => {
    const header = { kind: "link" as const, mode: 0o777, sizeBytes: 0, modifiedMs: 0, linkTarget: "" };
    const entries = [...chunksOf(text)].map((name) => encodeTarHeader({ ...header, name: `${name}${"x".repeat(100)}` }));
    return drain(readRawTar(ReadableStream.from([...entries, tarEnd])));
  },
  "git progress": (text) => {
    const push = createGitProgress(() => {}, { nowMs: () => 0 });
    for (const chunk of chunksOf(text)) push(chunk);
  },
  "output that may contain a secret": (text) => through(secrets.stream(), text),
  "a body that may contain a secret": (text) => answers && through(answers.body(), text),
  "a table": (text) => table([[text, "a"], ["b", text], [...chunksOf(text)]]).map((line) => line.text),
  "lines on a terminal": (text) => linesOf(text).map((line) => line.text),
  "a model's Markdown": (text) => {
    const view = createMarkdownView(() => 80);
    return [...text.split("\n").flatMap((line) => view.add(line)), ...view.end()].map((line) => line.text);
  },
  "a table in Markdown": (text) => {
    const view = createMarkdownView(() => 80);
    return [`|a|b|`, "|-|-|", `|${text}|`].flatMap((line) => view.add(line)).concat(view.end());
  },
  "keys and pastes": (text) => {
    const decoder = createKeyDecoder();
    for (const chunk of chunksOf(text)) decoder.push(Buffer.from(chunk));
    return decoder.flush();
  },
  "a message that is typed": (text) => inputRows(withText(text.slice(0, text.length / 4)), { columns: 80, rowsMax: 10 }),
  "words of a message": (text) => {
    const edited = insert("x")({ text: text.slice(0, text.length / 4), cursor: text.length >> 3 });
    return [moveWordLeft, moveWordRight, deleteWordLeft].map((edit) => edit(edited)).concat(moveLine(edited, -1) ?? []);
  },
  "a path that is typed": (text) => completeInput(withText(`@${text}`), { folder: null, changed: [text], commands: [] }),
};

describe("linear cost of foreign streams", () => {
  test.each(Object.entries(readers))("%s", async (_, read) => {
    await expectLinearCost(read);
  });
});
