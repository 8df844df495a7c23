import { readFileSync, statSync } from "node:fs";
import { dirname, isAbsolute, join, resolve } from "node:path";
import { ifErrnoSync, UNREACHABLE } from "../lib/failures.ts";
import type { GitIdentity } from "../sandbox/git-settings.ts";

const FILE_BYTES_MAX = 1024 * 1024;
/** Git's own limit for nested includes. */
const INCLUDES_MAX = 10;

/**
 * Reads only name and email from the user's git settings, which also contain programs to run, credentials and
 * addresses. Files are read as git reads them, including the files that they include, except for conditional includes
 * (`includeIf`). Never throws: without readable settings there is no identity.
 */
export function readGitIdentity(options: { home: string; variables: Readonly<Record<string, string | undefined>> }): GitIdentity {
  const { home, variables } = options;
  const { GIT_CONFIG_GLOBAL: own, XDG_CONFIG_HOME: xdg } = variables;
  const usual = [join(xdg !== undefined && isAbsolute(xdg) ? xdg : join(home, ".config"), "git/config"), join(home, ".gitconfig")];
  const identity: GitIdentity = {};
  for (const file of own === undefined ? usual : [own]) readInto(identity, { file, home, depth: 0 });
  return identity;
}

function readInto(identity: GitIdentity, { file, home, depth }: { file: string; home: string; depth: number }): void {
  for (const { key, value } of gitSettings(readSmall(file))) {
    if (key === "user.name") identity.name = value;
    else if (key === "user.email") identity.email = value;
    else if (key === "include.path" && depth < INCLUDES_MAX) {
      const path = value.startsWith("~/") ? join(home, value.slice(2)) : resolve(dirname(file), value);
      readInto(identity, { file: path, home, depth: depth + 1 });
    }
  }
}

function readSmall(file: string): string {
  const stat = ifErrnoSync(() => statSync(file), UNREACHABLE, null);
  if (stat === null || !stat.isFile() || stat.size > FILE_BYTES_MAX) return "";
  return ifErrnoSync(() => readFileSync(file, "utf8"), UNREACHABLE, "");
}

/** Yields the settings of sections without a subsection, in order. Stops at malformed input, which git would reject. */
export function* gitSettings(text: string): Generator<{ key: string; value: string }> {
  // A line that ends in a backslash continues on the next one, unless it is a comment.
  const token =
    /[ \t\r\n]*(?:[#;][^\n]*|\[([\w.-]+)[ \t]*("(?:[^"\\\n]|\\.)*")?\]|([A-Za-z][\w-]*)[ \t]*(=[ \t]*((?:[^\\\n]|\\[\s\S])*))?)/y;
  let section: string | null = null;
  for (let match = token.exec(text); match !== null; match = token.exec(text)) {
    const [, name, subsection, key, equals, value] = match;
    if (name !== undefined) section = subsection === undefined ? name.toLowerCase() : null;
    else if (key !== undefined && section !== null)
      yield { key: `${section}.${key.toLowerCase()}`, value: equals === undefined ? "true" : plainValue(value ?? "") };
  }
}

const escapes: Readonly<Record<string, string>> = { n: "\n", t: "\t", b: "\b", "\n": "" };

/** Removes quotes, escapes and comments. Trailing blanks count only inside quotes. */
function plainValue(raw: string): string {
  let value = "";
  let keptLength = 0;
  let quoted = false;
  for (let at = 0; at < raw.length; at++) {
    const char = raw[at] as string;
    if (char === "\\") {
      const next = raw[++at] ?? "";
      value += escapes[next] ?? next;
      keptLength = value.length;
    } else if (char === '"') {
      quoted = !quoted;
      keptLength = value.length;
    } else if (!quoted && (char === "#" || char === ";")) break;
    else {
      value += char;
      if (quoted || !/\s/.test(char)) keptLength = value.length;
    }
  }
  return value.slice(0, keptLength);
}
