import { CaissonError } from "../../contract/error/error.ts";
import { type ProgramIo, pathOf } from "./program.ts";

type Token = { word: string } | { operator: string };

/**
 * Runs as much of a shell as test scripts need: words with quotes, `$NAME` and `$1`, `;`, newlines, `&&`, `||`, `>`,
 * `>>`, `>&2`, and the built-ins `exit`, `cd` and `:`. Rejects anything else with an error on stderr and exit code 2,
 * so that no test mistakes it for a real shell.
 */
export async function runShell(script: string, io: ProgramIo): Promise<number> {
  const state = { cwd: io.cwd };
  let status = 0;
  let skip = false;
  for (const { words, before } of commandsOf(tokenize(script, io))) {
    skip = (before === "&&" && status !== 0) || (before === "||" && status === 0) || (skip && (before === "&&" || before === "||"));
    if (skip || words.length === 0) continue;
    status = await runCommand(words, io, state);
  }
  return status;
}

interface Command {
  words: Token[];
  before: string;
}

function commandsOf(tokens: Token[]): Command[] {
  const commands: Command[] = [{ words: [], before: ";" }];
  for (const token of tokens) {
    if ("operator" in token && [";", "&&", "||"].includes(token.operator)) commands.push({ words: [], before: token.operator });
    else commands.at(-1)?.words.push(token);
  }
  return commands;
}

async function runCommand(tokens: Token[], io: ProgramIo, state: { cwd: string }): Promise<number> {
  const argv: string[] = [];
  const written: Uint8Array[] = [];
  let into: { path: string; how: "replace" | "append" } | "stderr" | null = null;
  for (let i = 0; i < tokens.length; i += 1) {
    const token = tokens[i] as Token;
    if ("word" in token) argv.push(token.word);
    else if (token.operator === ">&2") into = "stderr";
    else {
      const target = tokens[++i];
      if (target === undefined || !("word" in target)) return complain(io, `syntax: nothing after ${token.operator}`);
      into = { path: target.word, how: token.operator === ">>" ? "append" : "replace" };
    }
  }
  const [name = ":"] = argv;
  if (name === ":") return 0;
  if (name === "exit") return io.exit(Number(argv[1] ?? "0"));
  if (name === "cd") {
    state.cwd = pathOf({ ...io, cwd: state.cwd }, argv[1] ?? io.env.HOME ?? "/");
    return 0;
  }
  const stdout: ProgramIo["stdout"] = async (data) => {
    if (into === null) return io.stdout(data);
    if (into === "stderr") return io.stderr(data);
    written.push(Buffer.from(data as Uint8Array));
  };
  try {
    const status = await io.run(argv, { ...io, argv, cwd: state.cwd, stdout });
    if (into !== null && into !== "stderr") {
      io.files.write(pathOf({ ...io, cwd: state.cwd }, into.path), Buffer.concat(written), { how: into.how, uid: io.uid });
    }
    return status ?? 0;
  } catch (error) {
    if (!(error instanceof CaissonError) || error.code === "cancelled") throw error;
    const code = error.details?.guest === "not_found" && error.message.endsWith("no such program") ? 127 : 1;
    await io.stderr(`${error.message}\n`);
    return code;
  }
}

async function complain(io: ProgramIo, what: string): Promise<number> {
  await io.stderr(`fake sh: ${what}\n`);
  return 2;
}

const operators = ["&&", "||", ">&2", ">>", ">", ";", "\n"];

function tokenize(script: string, io: ProgramIo): Token[] {
  const tokens: Token[] = [];
  let word: string | null = null;
  const flush = () => {
    if (word !== null) tokens.push({ word });
    word = null;
  };
  let at = 0;
  const variable = (): string => {
    const match = /^\$(?:\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*|[0-9@$]))/.exec(script.slice(at));
    if (match === null) {
      at += 1;
      return "$";
    }
    at += match[0].length;
    const name = match[1] ?? match[2] ?? "";
    if (name === "$") return String(io.pid);
    // The arguments of `sh -c script name one two` begin after the name.
    return /^[0-9]$/.test(name) ? (io.argv[3 + Number(name)] ?? "") : (io.env[name] ?? "");
  };
  while (at < script.length) {
    const rest = script.slice(at);
    const operator = operators.find((each) => rest.startsWith(each));
    const character = script[at] as string;
    if (operator !== undefined) {
      flush();
      tokens.push({ operator: operator === "\n" ? ";" : operator });
      at += operator.length;
    } else if (character === " " || character === "\t") {
      flush();
      at += 1;
    } else if (character === "#" && word === null) {
      const end = script.indexOf("\n", at);
      at = end < 0 ? script.length : end;
    } else if (character === "'") {
      const end = script.indexOf("'", at + 1);
      word = (word ?? "") + script.slice(at + 1, end < 0 ? script.length : end);
      at = end < 0 ? script.length : end + 1;
    } else if (character === '"') {
      word ??= "";
      for (at += 1; at < script.length && script[at] !== '"'; ) {
        if (script[at] === "$") word += variable();
        else {
          if (script[at] === "\\" && '"\\$`'.includes(script[at + 1] ?? "")) at += 1;
          word += script[at++] as string;
        }
      }
      at += 1;
    } else if (character === "$") word = (word ?? "") + variable();
    else if (character === "\\") {
      word = (word ?? "") + (script[at + 1] ?? "");
      at += 2;
    } else if ("|&<()`".includes(character))
      throw new CaissonError("unsupported", `fake sh: ${JSON.stringify(character)} is not supported`);
    else {
      word = (word ?? "") + character;
      at += 1;
    }
  }
  flush();
  return tokens;
}
