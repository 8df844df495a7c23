import { unreachable } from "../../lib/unreachable.ts";
import * as edit from "./edit-text.ts";
import type { Key, KeyName } from "./key-decoder.ts";

/** What is being typed, and what was typed before. Pure data: see `pressKey`. */
export interface Prompt {
  readonly edited: edit.EditedText;
  /** Earlier inputs, oldest first. */
  readonly history: readonly string[];
  /** Which of them is shown; their number: what is being typed. */
  readonly at: number;
  /** What was being typed before an earlier input was shown. */
  readonly draft: string;
}

/** What a key asks of whoever reads the prompt, beside editing. */
export type PromptAction = "submit" | "interrupt" | "leave" | "complete" | "redraw" | "cancel" | null;

/** Longer is not taken in: what is pasted by mistake shall not hang the terminal. */
export const INPUT_CHARACTERS_MAX = 64 * 1024;

export function emptyPrompt(history: readonly string[]): Prompt {
  return { edited: edit.emptyText, history, at: history.length, draft: "" };
}

export function pressKey(prompt: Prompt, key: Key): { prompt: Prompt; action: PromptAction } {
  if (key.kind !== "press") return { prompt: withEdit(prompt, edit.insert(roomFor(prompt, key.text))), action: null };
  return pressNamed(prompt, key.name);
}

export function withEdit(prompt: Prompt, change: edit.Edit): Prompt {
  return { ...prompt, edited: change(prompt.edited) };
}

/** The same without what is typed, and with one more earlier input. */
export function submitted(prompt: Prompt, input: string): Prompt {
  const isNew = input.trim() !== "" && prompt.history.at(-1) !== input;
  return emptyPrompt(isNew ? [...prompt.history, input] : prompt.history);
}

function roomFor({ edited }: Prompt, text: string): string {
  return text.slice(0, Math.max(0, INPUT_CHARACTERS_MAX - edited.text.length)).toWellFormed();
}

const EDITS: Partial<Record<KeyName, edit.Edit>> = {
  newline: edit.insert("\n"),
  backspace: edit.deleteLeft,
  left: edit.moveLeft,
  right: edit.moveRight,
  wordLeft: edit.moveWordLeft,
  wordRight: edit.moveWordRight,
  home: edit.moveHome,
  end: edit.moveEnd,
  delete: edit.deleteRight,
  deleteWordLeft: edit.deleteWordLeft,
  deleteToStart: edit.deleteToStart,
  deleteToEnd: edit.deleteToEnd,
};

function pressNamed(prompt: Prompt, name: KeyName): { prompt: Prompt; action: PromptAction } {
  const change = EDITS[name];
  if (change) return { prompt: withEdit(prompt, change), action: null };
  switch (name) {
    case "enter":
      return endsWithBackslash(prompt.edited) ? { prompt: withEdit(prompt, breakLine), action: null } : { prompt, action: "submit" };
    case "up":
      return { prompt: vertical(prompt, -1), action: null };
    case "down":
      return { prompt: vertical(prompt, 1), action: null };
    case "tab":
      return { prompt, action: "complete" };
    case "interrupt":
      return { prompt, action: "interrupt" };
    case "endOfInput":
      return prompt.edited.text === "" ? { prompt, action: "leave" } : { prompt: withEdit(prompt, edit.deleteRight), action: null };
    case "redraw":
      return { prompt, action: "redraw" };
    case "escape":
      return { prompt, action: "cancel" };
    case "newline":
    case "backspace":
    case "delete":
    case "left":
    case "right":
    case "wordLeft":
    case "wordRight":
    case "home":
    case "end":
    case "deleteWordLeft":
    case "deleteToStart":
    case "deleteToEnd":
      return { prompt, action: null };
    default:
      return unreachable(name);
  }
}

/** A backslash at the end of a line means that the next line belongs to it. */
const endsWithBackslash = ({ text, cursor }: edit.EditedText) => cursor === text.length && text.endsWith("\\");
const breakLine: edit.Edit = (edited) => edit.insert("\n")(edit.deleteLeft(edited));

/** Within the text, or to an earlier or later input where it has no more lines. */
function vertical(prompt: Prompt, by: -1 | 1): Prompt {
  const moved = edit.moveLine(prompt.edited, by);
  if (moved) return { ...prompt, edited: moved };
  const at = prompt.at + by;
  if (at < 0 || at > prompt.history.length) return prompt;
  const draft = prompt.at === prompt.history.length ? prompt.edited.text : prompt.draft;
  return { ...prompt, at, draft, edited: edit.withText(prompt.history[at] ?? draft) };
}
