import { unreachable } from "../../lib/unreachable.ts";
import * as edit from "./edit-text.ts";
import type { Key, KeyName } from "./key-decoder.ts";

/** The current input and the earlier ones. Pure data: see `pressKey`. */
export interface Prompt {
  readonly edited: edit.EditedText;
  /** Earlier inputs, oldest first. */
  readonly history: readonly string[];
  /** The index of the input shown; `history.length` for the draft. */
  readonly at: number;
  /** The draft from before an earlier input was shown. */
  readonly draft: string;
}

/** What a key requests besides editing. */
export type PromptAction = "submit" | "interrupt" | "leave" | "complete" | "redraw" | "cancel" | null;

/** Longer input is refused: an accidental paste must not hang the terminal. */
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

/** Returns an empty prompt with the submitted input added to the history. */
export function submitPrompt(prompt: Prompt, input: string): Prompt {
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

/** A backslash at the end of a line continues the input on the next one. */
const endsWithBackslash = ({ text, cursor }: edit.EditedText) => cursor === text.length && text.endsWith("\\");
const breakLine: edit.Edit = (edited) => edit.insert("\n")(edit.deleteLeft(edited));

/** Moves within the text, or to an earlier or later input if there are no more lines. */
function vertical(prompt: Prompt, by: -1 | 1): Prompt {
  const moved = edit.moveLine(prompt.edited, by);
  if (moved) return { ...prompt, edited: moved };
  const at = prompt.at + by;
  if (at < 0 || at > prompt.history.length) return prompt;
  const draft = prompt.at === prompt.history.length ? prompt.edited.text : prompt.draft;
  return { ...prompt, at, draft, edited: edit.withText(prompt.history[at] ?? draft) };
}
