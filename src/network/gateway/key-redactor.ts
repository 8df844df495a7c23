/** Anything shorter is not a secret but a word such as `ollama`, which may appear in any text. */
const KEY_LENGTH_MIN = 12;
const STAR = 0x2a;

export interface KeyRedactor {
  /** Returns the bytes that can be passed on now. The possible beginning of a key waits for the next chunk. */
  push(chunk: Buffer): Buffer;
  rest(): Buffer;
  text(text: string): string;
}

/** Overwrites a key wherever it comes back, even in base64. The length stays the same, so no framing changes. */
export function createKeyRedactor(key: string): KeyRedactor {
  const forms = key.length < KEY_LENGTH_MIN ? [] : [Buffer.from(key), ...base64Forms(key)];
  let held: Buffer = Buffer.alloc(0);
  const push = (chunk: Buffer): Buffer => {
    if (forms.length === 0) return chunk;
    const bytes = overwrite(held.length === 0 ? chunk : Buffer.concat([held, chunk]), forms);
    const keep = Math.max(...forms.map((form) => overlap(bytes, form)));
    held = bytes.subarray(bytes.length - keep);
    return bytes.subarray(0, bytes.length - keep);
  };
  return {
    push,
    rest() {
      const last = held;
      held = Buffer.alloc(0);
      return last;
    },
    text: (text) => (forms.length === 0 ? text : overwrite(Buffer.from(text), forms).toString("utf8")),
  };
}

function overwrite(bytes: Buffer, forms: readonly Buffer[]): Buffer {
  let copy: Buffer | null = null;
  for (const form of forms) {
    for (let at = bytes.indexOf(form); at >= 0; at = bytes.indexOf(form, at + form.length)) {
      copy ??= Buffer.from(bytes);
      copy.fill(STAR, at, at + form.length);
    }
  }
  return copy ?? bytes;
}

/** Returns how many bytes at the end are the beginning of the form. */
function overlap(bytes: Buffer, form: Buffer): number {
  const most = Math.min(form.length - 1, bytes.length);
  for (let length = most; length > 0; length--) {
    if (bytes[bytes.length - length] === form[0] && bytes.subarray(bytes.length - length).equals(form.subarray(0, length))) return length;
  }
  return 0;
}

/**
 * Returns the forms of a key inside base64, one for each of its three possible offsets, without the characters that it
 * shares with its neighbors.
 */
function base64Forms(key: string): Buffer[] {
  return [0, 1, 2].map((shift) => {
    const bytes = Buffer.concat([Buffer.alloc(shift), Buffer.from(key)]);
    const whole = bytes.length - (bytes.length % 3);
    return Buffer.from(
      bytes
        .subarray(0, whole)
        .toString("base64")
        .slice(shift === 0 ? 0 : 4),
    );
  });
}
