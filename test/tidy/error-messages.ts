import type { SourceFile, Violation } from "./rules.ts";

/**
 * Messages are fragments, since they are printed after `caisson: ` and joined by colons: no capital at the beginning
 * except in a name, no full stop, one sentence. Only checks literals in the call itself.
 */
export function errorMessages(files: readonly SourceFile[]): Violation[] {
  return files.flatMap((file) => {
    if (!/^src\/.*\.ts$/.test(file.path) || /\.test\.ts$/.test(file.path)) return [];
    return messagesIn(file.text).flatMap((message) => {
      if (/^(?!Caisson\b)[A-Z][a-z]*[ ,']/.test(message)) return [{ path: file.path, what: `a message begins with a capital: ${message}` }];
      if (/[^.]\.$/.test(message)) return [{ path: file.path, what: `a message ends with a full stop: ${message}` }];
      return /[a-z]\. [A-Z]/.test(message) ? [{ path: file.path, what: `a message has several sentences: ${message}` }] : [];
    });
  });
}

/** Returns the literal message of every `new CaissonError(code, message, …)`. */
export function messagesIn(text: string): string[] {
  return [...text.matchAll(/\bnew CaissonError\(\s*[^,()]*,\s*(?=["`])/g)].map((call) => literalAt(text, call.index + call[0].length));
}

function literalAt(text: string, start: number): string {
  const quote = text[start];
  let at = start + 1;
  while (at < text.length && text[at] !== quote) {
    if (text[at] === "\\") at += 2;
    else if (quote === "`" && text.startsWith("${", at)) at = afterPlaceholder(text, at + 2);
    else at += 1;
  }
  return text.slice(start + 1, at);
}

/** Returns the offset after the brace that closes the placeholder at `at`, even if strings in it contain braces. */
function afterPlaceholder(text: string, at: number): number {
  let next = at;
  for (let depth = 1; depth > 0 && next < text.length; ) {
    const letter = text[next] as string;
    if (letter === '"' || letter === "`" || letter === "'") {
      next += literalAt(text, next).length + 2;
      continue;
    }
    if (letter === "{") depth += 1;
    if (letter === "}") depth -= 1;
    next += 1;
  }
  return next;
}
