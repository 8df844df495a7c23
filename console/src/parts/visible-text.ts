/**
 * Makes names that hostile code chose safe to read: replaces control characters, direction marks and invisible
 * characters with visible signs.
 */
export function visibleText(text: string): string {
  return text.replace(hidden, (character) => {
    const code = character.codePointAt(0) ?? 0;
    // Unicode has pictures of the control characters.
    if (code < 0x20) return String.fromCodePoint(0x2400 + code);
    if (code === 0x7f) return "\u2421";
    return `\u27e8U+${code.toString(16).toUpperCase().padStart(4, "0")}\u27e9`;
  });
}

const hidden = /[\p{Cc}\p{Cf}\p{Co}\p{Cn}\p{Zl}\p{Zp}\u00a0\u115f\u1160\u3164\uffa0\ufffd]/gu;

/** Returns the first line with content. */
export function visibleTitle(text: string): string {
  return visibleText(
    text
      .trimStart()
      .split(/[\r\n]/, 1)[0]
      ?.trimEnd() ?? "",
  );
}

/** Like `visibleText` for text of several lines, in which scripts and emoji need their joiners. */
export function visibleLines(text: string): string {
  return text.replaceAll("\r\n", "\n").replace(hiddenInLines, visibleText);
}

const hiddenInLines = /(?![\n\t])[\p{Cc}\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/gu;
