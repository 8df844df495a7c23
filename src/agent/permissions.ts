import type { PermissionRules } from "../contract/agent.ts";
import type { Permission } from "../contract/run.ts";

/** What holds when an agent says nothing: reading and editing the workspace is what it is for; what cannot be undone or leaves the sandbox is asked about or denied. */
export const defaultPermissions: PermissionRules = {
  "*": "allow",
  "bash:*rm -rf /*": "deny",
  "bash:*curl*|*sh*": "deny",
  "bash:*wget*|*sh*": "deny",
  "bash:*git push*--force*": "deny",
  "bash:*git push*-f*": "deny",
  "bash:*git reset*--hard*": "deny",
  "bash:git push*": "ask",
  "bash:git commit*": "ask",
  "git:push*": "ask",
  "git:reset --hard*": "deny",
};

/**
 * The rule of the longest matching pattern; among equals the stricter one. `*` stands for any characters. A shell line is looked at as a whole and at each
 * of its commands, and the strictest finding counts, so that `cd x && git push` is a push.
 */
export function permissionFor(subject: string, rules: PermissionRules): { permission: Permission; pattern: string } {
  const subjects = subject.startsWith("bash:") ? shellSubjects(subject) : [subject];
  const found = subjects.map((each) => longest(each, rules));
  return found.reduce((strictest, each) => (strictness[each.permission] > strictness[strictest.permission] ? each : strictest));
}

const strictness: Record<Permission, number> = { allow: 0, ask: 1, deny: 2 };

function longest(subject: string, rules: PermissionRules): { permission: Permission; pattern: string } {
  let best: { permission: Permission; pattern: string } = { permission: "ask", pattern: "" };
  let length = -1;
  for (const [pattern, permission] of Object.entries(rules)) {
    if (!matches(subject, pattern)) continue;
    const stricter = pattern.length === length && strictness[permission] > strictness[best.permission];
    if (pattern.length > length || stricter) {
      best = { permission, pattern };
      length = pattern.length;
    }
  }
  return best;
}

/** Glob with `*` only, without building a regular expression a long pattern could make slow. */
export function matches(text: string, pattern: string): boolean {
  const pieces = pattern.split("*");
  const first = pieces[0] ?? "";
  const last = pieces.at(-1) ?? "";
  if (pieces.length === 1) return text === pattern;
  if (!text.startsWith(first) || !text.endsWith(last) || text.length < first.length + last.length) return false;
  let at = first.length;
  for (const piece of pieces.slice(1, -1)) {
    const found = text.indexOf(piece, at);
    if (found === -1 || found + piece.length > text.length - last.length) return false;
    at = found + piece.length;
  }
  return true;
}

/** The commands of a shell line, roughly: separators outside quotes part them, leading variables and wrappers are dropped. It guards against carelessness; the wall is the sandbox. */
function shellSubjects(subject: string): string[] {
  const line = subject.slice("bash:".length);
  const parts = splitOutsideQuotes(line)
    .map((part) => part.trim().replace(/^((env|sudo|time|nohup|command|exec)\s+|[A-Za-z_][A-Za-z0-9_]*=\S*\s+|\(|\{\s)+/, ""))
    .filter((part) => part !== "");
  return [subject, ...parts.map((part) => `bash:${part}`)];
}

function splitOutsideQuotes(line: string): string[] {
  const parts: string[] = [];
  let quote = "";
  let current = "";
  for (let at = 0; at < line.length; at++) {
    const character = line[at] ?? "";
    if (quote !== "") {
      if (character === quote) quote = "";
    } else if (character === "'" || character === '"') {
      quote = character;
    } else if (";|&\n`".includes(character) || (character === "$" && line[at + 1] === "(")) {
      parts.push(current);
      current = "";
      continue;
    }
    current += character;
  }
  parts.push(current);
  return parts;
}
