import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { openInputHistory } from "./input-history.ts";
import type { Key, KeyName } from "./key-decoder.ts";
import { emptyPrompt, INPUT_CHARACTERS_MAX, type Prompt, pressKey, submitted } from "./prompt.ts";
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

  test("Enter sends; Alt-Enter and a backslash before Enter begin another line", () => {
    expect(pressed(prompt, type("a"), press("enter"))).toMatchObject({ text: "a", action: "submit" });
    expect(pressed(prompt, type("a"), press("newline"), type("b\\"), press("enter"), type("c"))).toMatchObject({
      text: "a\nb\nc",
      action: null,
    });
  });

  test("Up and Down go through earlier inputs where there is no line to go to, and back to what was being typed", () => {
    const up = pressed(prompt, type("draft"), press("up"));
    expect(up.text).toBe("second\nline");
    // The first one only moves to the line above.
    expect(pressed(up.prompt, press("up"), press("up")).text).toBe("first");
    expect(pressed(up.prompt, press("down")).text).toBe("draft");
    expect(pressed(prompt, press("down")).text).toBe("");
  });

  test("Ctrl-D leaves only when nothing is typed", () => {
    expect(pressed(prompt, press("endOfInput")).action).toBe("leave");
    expect(pressed(prompt, type("ab"), press("home"), press("endOfInput"))).toMatchObject({ text: "b", action: null });
  });

  test("what is submitted is an earlier input from then on, once", () => {
    expect(submitted(prompt, "new").history).toEqual(["first", "second\nline", "new"]);
    expect(submitted(prompt, "second\nline").history).toHaveLength(2);
    expect(submitted(prompt, "  ").history).toHaveLength(2);
  });

  test("more than can be shown in time is not taken in", () => {
    const paste: Key = { kind: "paste", text: "x".repeat(INPUT_CHARACTERS_MAX + 5) };
    expect(pressed(prompt, paste, type("more")).text).toHaveLength(INPUT_CHARACTERS_MAX);
  });
});

describe("what was typed before", () => {
  test("is kept for its user alone, also of several chats, and outlives a line that was cut off", async () => {
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

  test("does not grow for ever", async () => {
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

test("a key answers a question only after a pause: what was being typed when it came up is no answer", () => {
  let nowMs = 0;
  const guard = createQuestionGuard(() => nowMs);
  expect(guard.takesAnswer("q1")).toBe(true);
  nowMs = 10_000;
  guard.typed();
  nowMs += 200;
  expect(guard.takesAnswer("q2")).toBe(false);
  guard.typed();
  nowMs += 400;
  expect(guard.takesAnswer("q2")).toBe(false);
  nowMs += 200;
  expect(guard.takesAnswer("q2")).toBe(true);
  guard.typed();
  expect(guard.takesAnswer("q2")).toBe(true);
  expect([guard.takesAnswer(null), guard.takesAnswer("q3")]).toEqual([false, false]);
});

test("rows that a narrower window has broken are counted as often as they take a row", () => {
  const footer = { rows: [{ width: 70 }, { width: 0 }, { width: 55 }], cursor: { row: 2, column: 50 } };
  expect(rowsToCursor(footer, 80)).toBe(3);
  expect(rowsToCursor(footer, 40)).toBe(2 + 1 + 2);
  expect(rowsToCursor(null, 40)).toBe(0);
});
