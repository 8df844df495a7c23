import { describe, expect, test } from "vitest";
import type { OutputChunk, Process } from "../sandbox/sandbox.ts";
import { redactedProcess } from "./redacted-process.ts";
import { createAnswerRedactor } from "./secrets/answer-redactor.ts";

const value = "s3cr3t-value-of-20ch";
const placeholder = "PLACEHOLDER-OF-20-CH";

function processOf(chunks: readonly OutputChunk[]): Process {
  const never = async () => {};
  return {
    ref: "p",
    pid: 2,
    output: (async function* () {
      yield* chunks;
    })(),
    ended: Promise.resolve({ kind: "exited", exitCode: 0, durationMs: 1, memoryKills: 0 } as never),
    discardOutput() {},
    write: never,
    closeStdin: never,
    resize: never,
    signal: never,
    kill: never,
    detach() {},
  };
}
const chunk = (stream: "stdout" | "stderr", offset: number, text: string): OutputChunk => ({ stream, offset, data: Buffer.from(text) });

describe("a redacted process", () => {
  test("redacts each stream across chunks, and keeps the offsets", async () => {
    const text = `before ${value} after`;
    const parts = [text.slice(0, 12), text.slice(12, 20), text.slice(20)];
    let at = 100;
    const out = parts.map((part) => {
      at += part.length;
      return chunk("stdout", at - part.length, part);
    });
    const outputRedactor = () => createAnswerRedactor([{ value, placeholder }])?.body() ?? null;
    const process = redactedProcess(processOf([out[0], chunk("stderr", 0, "warning\n"), out[1], out[2]] as OutputChunk[]), {
      outputRedactor,
      shownArgv: ["echo", placeholder],
    });
    expect(process.shownArgv).toEqual(["echo", placeholder]);
    const got: Record<string, string> = { stdout: "", stderr: "" };
    let expected = 100;
    for await (const each of process.output) {
      got[each.stream] += Buffer.from(each.data).toString();
      if (each.stream !== "stdout") continue;
      expect(each.offset).toBe(expected);
      expected += each.data.length;
    }
    expect(got).toEqual({ stdout: `before ${placeholder} after`, stderr: "warning\n" });
  });

  test("is the same process without secrets", () => {
    const process = processOf([]);
    expect(redactedProcess(process, { outputRedactor: () => null })).toBe(process);
  });
});
