import { StringDecoder } from "node:string_decoder";

/** A user's key or text, regardless of the bytes that the terminal sends for it. */
export type Key =
  | { kind: "text"; text: string }
  /** Pasted text, possibly several lines; nothing in it is a command. */
  | { kind: "paste"; text: string }
  | { kind: "press"; name: KeyName };

export type KeyName =
  | "enter"
  | "newline"
  | "tab"
  | "backspace"
  | "delete"
  | "left"
  | "right"
  | "up"
  | "down"
  | "wordLeft"
  | "wordRight"
  | "home"
  | "end"
  | "deleteWordLeft"
  | "deleteToStart"
  | "deleteToEnd"
  | "interrupt"
  | "endOfInput"
  | "redraw"
  | "escape";

export interface KeyDecoder {
  /** Returns the keys that these bytes complete, and keeps an incomplete sequence for the next call. */
  push(bytes: Uint8Array): Key[];
  /** Whether an escape came last, which may be the key itself or the start of a sequence. */
  pending(): boolean;
  /** Ends a pending sequence: a single escape is the key itself. */
  flush(): Key[];
}

const CONTROL_KEYS: Readonly<Record<string, KeyName>> = {
  "\x01": "home",
  "\x02": "left",
  "\x03": "interrupt",
  "\x04": "endOfInput",
  "\x05": "end",
  "\x06": "right",
  "\x08": "backspace",
  "\t": "tab",
  "\n": "newline",
  "\x0b": "deleteToEnd",
  "\x0c": "redraw",
  "\r": "enter",
  "\x0e": "down",
  "\x10": "up",
  "\x15": "deleteToStart",
  "\x17": "deleteWordLeft",
  "\x7f": "backspace",
};

/** Keys pressed with Alt, which follow an escape. */
const ALT_KEYS: Readonly<Record<string, KeyName>> = {
  "\r": "newline",
  "\n": "newline",
  b: "wordLeft",
  f: "wordRight",
  "\x7f": "deleteWordLeft",
  "\x08": "deleteWordLeft",
};

/** Keys by the text between `ESC [` (or `ESC O`) and the end of the sequence, including its last character. */
const SEQUENCES: Readonly<Record<string, KeyName>> = {
  A: "up",
  B: "down",
  C: "right",
  D: "left",
  F: "end",
  H: "home",
  "1~": "home",
  "3~": "delete",
  "4~": "end",
  "7~": "home",
  "8~": "end",
  "1;3C": "wordRight",
  "1;3D": "wordLeft",
  "1;5C": "wordRight",
  "1;5D": "wordLeft",
  // Shift-Enter and Alt-Enter in terminals that distinguish them from Enter.
  "13;2u": "newline",
  "13;3u": "newline",
  "27;2;13~": "newline",
  "27;3;13~": "newline",
};

// biome-ignore lint/suspicious/noControlCharactersInRegex: what terminals send.
const WHOLE_SEQUENCE = /^\x1b(?:\[([0-?]*[ -/]*[@-~])|O([@-~]))/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: the same, while more may come.
const BEGUN_SEQUENCE = /^\x1b(?:$|\[[0-?]*[ -/]*$|O$)/;
const PASTE_BEGINS = "\x1b[200~";
const PASTE_ENDS = "\x1b[201~";
/** A longer sequence is not a key. An endless paste is passed on in pieces. */
const SEQUENCE_MAX = 64;
const PASTE_PIECE_MAX = 64 * 1024;

export function createKeyDecoder(): KeyDecoder {
  // The bytes of one character may arrive in two pieces.
  const decoder = new StringDecoder("utf8");
  let rest = "";
  let isPasting = false;
  /** The text before this index does not contain the end of the paste. */
  let searched = 0;

  const takePaste = (): Key[] => {
    const end = rest.indexOf(PASTE_ENDS, searched);
    searched = Math.max(0, rest.length - PASTE_ENDS.length);
    if (end < 0 && rest.length < PASTE_PIECE_MAX) return [];
    searched = 0;
    const cut = end < 0 ? rest.length - PASTE_ENDS.length : end;
    const text = cleanPaste(rest.slice(0, cut));
    rest = rest.slice(end < 0 ? cut : end + PASTE_ENDS.length);
    isPasting = end < 0;
    return text === "" ? [] : [{ kind: "paste", text }];
  };
  const takeAll = (): Key[] => {
    const keys: Key[] = [];
    while (rest !== "") {
      if (isPasting) {
        keys.push(...takePaste());
        if (isPasting) return keys;
        continue;
      }
      if (rest.startsWith(PASTE_BEGINS)) {
        rest = rest.slice(PASTE_BEGINS.length);
        isPasting = true;
        continue;
      }
      if (BEGUN_SEQUENCE.test(rest) && rest.length < SEQUENCE_MAX) return keys;
      const { key, length } = firstKey(rest);
      rest = rest.slice(length);
      if (key !== null) keys.push(key);
    }
    return keys;
  };
  return {
    push(bytes) {
      rest += decoder.write(Buffer.from(bytes));
      return takeAll();
    },
    pending: () => rest !== "" && !isPasting,
    flush() {
      if (isPasting || rest === "") return [];
      const isEscape = rest === "\x1b";
      rest = "";
      return isEscape ? [{ kind: "press", name: "escape" }] : [];
    },
  };
}

/** Decodes the first key. `key` is null for an unknown sequence, which is dropped. */
function firstKey(text: string): { key: Key | null; length: number } {
  const press = (name: KeyName | undefined, length: number) => ({
    key: name === undefined ? null : ({ kind: "press", name } as const),
    length,
  });
  if (text.startsWith("\x1b")) {
    const found = WHOLE_SEQUENCE.exec(text);
    if (found) return press(SEQUENCES[found[1] ?? found[2] ?? ""], found[0].length);
    const second = text[1] ?? "";
    // An escape before another escape is the key itself.
    if (second === "\x1b") return press("escape", 1);
    return press(ALT_KEYS[second], 1 + (second === "" ? 0 : characterAt(text, 1).length));
  }
  const first = text[0] ?? "";
  if (first < " " || first === "\x7f") return press(CONTROL_KEYS[first], 1);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: text is everything else.
  const words = /^[^\x00-\x1f\x7f]+/.exec(text)?.[0] ?? first;
  return { key: { kind: "text", text: words }, length: words.length };
}

const characterAt = (text: string, index: number) => String.fromCodePoint(text.codePointAt(index) ?? 0);

/** Normalizes line breaks and removes control characters. */
function cleanPaste(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are left out.
  return text.replaceAll(/\r\n?/g, "\n").replaceAll(/[\x00-\x08\x0b-\x1f\x7f]/g, "");
}
