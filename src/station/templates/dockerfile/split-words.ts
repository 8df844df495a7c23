/**
 * Splits a text at white space outside of quotes. The words keep their quotes and escapes, which `expandWord` resolves.
 */
export function splitWords(text: string, escapeMark: string): string[] {
  const words: string[] = [];
  let word = "";
  let quote = "";
  for (let at = 0; at < text.length; at += 1) {
    const character = text[at] as string;
    if (quote === "" && /\s/.test(character)) {
      if (word !== "") words.push(word);
      word = "";
      continue;
    }
    word += character;
    if (character === escapeMark && quote !== "'" && at + 1 < text.length) {
      at += 1;
      word += text[at];
    } else if (quote === "" && (character === '"' || character === "'")) quote = character;
    else if (character === quote) quote = "";
  }
  if (word !== "") words.push(word);
  return words;
}

/** Returns the strings of a JSON array, or null if the text is not one. */
export function jsonWords(text: string): string[] | null {
  if (!text.startsWith("[")) return null;
  try {
    const value: unknown = JSON.parse(text);
    return Array.isArray(value) && value.every((each) => typeof each === "string") ? (value as string[]) : null;
  } catch (error) {
    // Docker treats such a text as a shell command, too.
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}
