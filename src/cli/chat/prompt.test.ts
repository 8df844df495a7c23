import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { openInputHistory } from "./input-history.ts";
import type { Key, KeyName } from "./key-decoder.ts";
import { emptyPrompt, INPUT_CHARACTERS_MAX, type Prompt, pressKey, submitPrompt } from "./prompt.ts";
import { createQuestionGuard } from "./question-guard.ts";
import { rowsToCursor } from "./screen.ts";

const type = (text: string): Key => ({ kind: "text", text });
const press = (name: KeyName): Key => ({ kind: "press", name });

function pressed(prompt: Prompt, ...keys: Key[]) {
  let state: ReturnType<typeof pressKey> = { prompt, action: null };
  for (const key of keys) state = pressKey(state.prompt, key);
  return { text: state.prompt.edited.text, action: state.action, prompt: state.prompt };
}

describe("a prompt", () => {
  const prompt = emptyPrompt(["first", "second\nline"]);

  test("sends on Enter, and breaks the line on Alt-Enter or a trailing backslash", () => {
    expect(pressed(prompt, type("a"), press("enter"))).toMatchObject({ text: "a", action: "submit" });
    expect(pressed(prompt, type("a"), press("newline"), type("b\\"), press("enter"), type("c"))).toMatchObject({
      text: "a\nb\nc",
      action: null,
    });
  });

  test("recalls earlier inputs with Up and Down, and returns to the draft", () => {
    const up = pressed(prompt, type("draft"), press("up"));
    expect(up.text).toBe("second\nline");
    // The first press only moves to the line above.
    expect(pressed(up.prompt, press("up"), press("up")).text).toBe("first");
    expect(pressed(up.prompt, press("down")).text).toBe("draft");
    expect(pressed(prompt, press("down")).text).toBe("");
  });

  test("leaves on Ctrl-D only if the input is empty", () => {
    expect(pressed(prompt, press("endOfInput")).action).toBe("leave");
    expect(pressed(prompt, type("ab"), press("home"), press("endOfInput"))).toMatchObject({ text: "b", action: null });
  });

  test("adds a submitted input to the history, unless it repeats the last one", () => {
    expect(submitPrompt(prompt, "new").history).toEqual(["first", "second\nline", "new"]);
    expect(submitPrompt(prompt, "second\nline").history).toHaveLength(2);
    expect(submitPrompt(prompt, "  ").history).toHaveLength(2);
  });

  test("cuts off input that is too long to draw", () => {
    const paste: Key = { kind: "paste", text: "x".repeat(INPUT_CHARACTERS_MAX + 5) };
    expect(pressed(prompt, paste, type("more")).text).toHaveLength(INPUT_CHARACTERS_MAX);
  });
});

describe("the input history", () => {
  test("is private, shared by several chats, and survives a cut-off line", async () => {
    const stateDir = await mkdtemp(join(tmpdir(), "caisson-test-history-"));
    try {
      const [one, two] = await Promise.all([openInputHistory({ stateDir }), openInputHistory({ stateDir })]);
      await one.add("first\nline");
      await two.add("second");
      await two.add(" secret");
      const file = join(stateDir, "chat-history");
      expect((await stat(file)).mode & 0o777).toBe(0o600);
      await writeFile(file, `${await readFile(file, "utf8")}"cut o`);
      expect((await openInputHistory({ stateDir })).inputs).toEqual(["first\nline", "second"]);
    } finally {
      await rm(stateDir, { recursive: true });
    }
  });

  test("does not grow without bound", async () => {
    const stateDir = await mkdtemp(join(tmpdir(), "caisson-test-history-"));
    try {
      const file = join(stateDir, "chat-history");
      await writeFile(file, Array.from({ length: 5000 }, (_, index) => `"${index}"\n`).join(""));
      const { inputs } = await openInputHistory({ stateDir });
      expect([inputs.length, inputs.at(-1)]).toEqual([1000, "4999"]);
      expect((await readFile(file, "utf8")).split("\n")).toHaveLength(1001);
    } finally {
      await rm(stateDir, { recursive: true });
    }
  });
});

test("a key answers a question only after a pause in typing", () => {
  let nowMs = 0;
  const guard = createQuestionGuard(() => nowMs);
  expect(guard.takesAnswer("q1")).toBe(true);
  nowMs = 10_000;
  guard.recordKey();
  nowMs += 200;
  expect(guard.takesAnswer("q2")).toBe(false);
  guard.recordKey();
  nowMs += 400;
  expect(guard.takesAnswer("q2")).toBe(false);
  nowMs += 200;
  expect(guard.takesAnswer("q2")).toBe(true);
  guard.recordKey();
  expect(guard.takesAnswer("q2")).toBe(true);
  expect([guard.takesAnswer(null), guard.takesAnswer("q3")]).toEqual([false, false]);
});

test("the redraw counts rows that a narrower window has wrapped", () => {
  const footer = { rows: [{ width: 70 }, { width: 0 }, { width: 55 }], cursor: { row: 2, column: 50 } };
  expect(rowsToCursor(footer, 80)).toBe(3);
  expect(rowsToCursor(footer, 40)).toBe(2 + 1 + 2);
  expect(rowsToCursor(null, 40)).toBe(0);
});
