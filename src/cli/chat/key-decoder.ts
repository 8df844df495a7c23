import { StringDecoder } from "node:string_decoder";

/** What somebody typed, whatever bytes their terminal sends for it. */
export type Key =
  | { kind: "text"; text: string }
  /** Several lines at once, as they were in the clipboard; nothing in it is a command. */
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
  /** The keys that these bytes complete; what is begun is kept for the next ones. */
  push(bytes: Uint8Array): Key[];
  /** Whether an escape was begun that may be the key itself or the beginning of another's sequence. */
  pending(): boolean;
  /** Nothing more comes of what was begun: an escape is the key itself. */
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

/** After an escape: what Alt does with a key. */
const ALT_KEYS: Readonly<Record<string, KeyName>> = {
  "\r": "newline",
  "\n": "newline",
  b: "wordLeft",
  f: "wordRight",
  "\x7f": "deleteWordLeft",
  "\x08": "deleteWordLeft",
};

/** What stands between `ESC [` (or `ESC O`) and the end of a sequence, and its last character. */
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
  // Shift-Enter and Alt-Enter of terminals that tell them from Enter.
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
/** A sequence that is longer is none, and a paste that does not end is let go of in pieces. */
const SEQUENCE_MAX = 64;
const PASTE_PIECE_MAX = 64 * 1024;

export function createKeyDecoder(): KeyDecoder {
  // A character may come in two pieces.
  const decoder = new StringDecoder("utf8");
  let rest = "";
  let isPasting = false;
  /** Up to here there is no end of a paste. */
  let searched = 0;

  const takePaste = (): Key[] => {
    const end = rest.indexOf(PASTE_ENDS, searched);
    searched = Math.max(0, rest.length - PASTE_ENDS.length);
    if (end < 0 && rest.length < PASTE_PIECE_MAX) return [];
    searched = 0;
    const cut = end < 0 ? rest.length - PASTE_ENDS.length : end;
    const text = pasted(rest.slice(0, cut));
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

/** Null: it is no key of ours, and leaves no trace. */
function firstKey(text: string): { key: Key | null; length: number } {
  const press = (name: KeyName | undefined, length: number) => ({
    key: name === undefined ? null : ({ kind: "press", name } as const),
    length,
  });
  if (text.startsWith("\x1b")) {
    const found = WHOLE_SEQUENCE.exec(text);
    if (found) return press(SEQUENCES[found[1] ?? found[2] ?? ""], found[0].length);
    const second = text[1] ?? "";
    // An escape before another one, or before what is no key with Alt, is itself.
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

/** Line breaks as they are meant, and nothing that would be obeyed somewhere. */
function pasted(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are left out.
  return text.replaceAll(/\r\n?/g, "\n").replaceAll(/[\x00-\x08\x0b-\x1f\x7f]/g, "");
}
