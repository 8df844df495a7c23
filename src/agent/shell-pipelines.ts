export interface Word {
  text: string;
  /** The scripts in this word's substitutions. */
  inner: string[];
}

interface Pipeline {
  commands: Word[][];
  /** Here-documents: input of the pipeline. Only a shell runs them. */
  documents: string[];
}

/** Splits a script into pipelines, each with its commands as words without quotes. */
export function pipelinesOf(script: string): Pipeline[] {
  const pipelines: Pipeline[] = [];
  let pipeline: Pipeline = { commands: [], documents: [] };
  let words: Word[] = [];
  let word: Word | null = null;
  let awaited: string[] = [];
  const endWord = () => {
    if (word) words.push(word);
    word = null;
  };
  const endCommand = () => {
    endWord();
    if (words.length > 0) pipeline.commands.push(words);
    words = [];
  };
  const endPipeline = () => {
    endCommand();
    if (pipeline.commands.length > 0) pipelines.push(pipeline);
    pipeline = { commands: [], documents: [] };
  };
  const add = (text: string) => {
    word ??= { text: "", inner: [] };
    word.text += text;
  };
  const addInner = (inner: string) => {
    add("");
    word?.inner.push(inner);
  };
  for (let at = 0; at < script.length; ) {
    const character = script[at] as string;
    const next = script[at + 1];
    if (character === "'") {
      const end = endOf(script, at + 1, "'");
      add(script.slice(at + 1, end));
      at = end + 1;
    } else if (character === '"') at = readDouble(script, at + 1, { add, addInner });
    else if (character === "\\") {
      if (next !== "\n") add(next ?? "");
      at += 2;
    } else if ((character === "$" || character === "<" || character === ">") && next === "(") {
      const end = closing(script, at + 2);
      addInner(script.slice(at + 2, end));
      at = end + 1;
    } else if (character === "`") {
      const end = endOf(script, at + 1, "`");
      addInner(script.slice(at + 1, end));
      at = end + 1;
    } else if (character === "#" && word === null) at = endOf(script, at, "\n");
    else if (script.startsWith("<<", at) && script[at + 2] !== "<") {
      const mark = /^<<-?\s*(['"]?)([\w.-]+)\1/.exec(script.slice(at, at + 200));
      if (mark?.[2]) awaited.push(mark[2]);
      endWord();
      at += mark?.[0].length ?? 2;
    } else if (character === "\n") {
      const body = readDocuments(script, at + 1, awaited);
      pipeline.documents.push(...body.documents);
      awaited = [];
      endPipeline();
      at = body.next;
    } else if (character === "|" && next !== "|") {
      endCommand();
      at += next === "&" ? 2 : 1;
    } else if (character === "&" && (next === ">" || script[at - 1] === ">" || script[at - 1] === "<")) {
      add(character);
      at += 1;
    } else if (";&|()".includes(character)) {
      endPipeline();
      at += 1;
    } else if (character === " " || character === "\t" || character === "\r") {
      endWord();
      at += 1;
    } else {
      add(character);
      at += 1;
    }
  }
  endPipeline();
  return pipelines;
}

function readDouble(script: string, start: number, into: { add: (text: string) => void; addInner: (script: string) => void }): number {
  into.add("");
  for (let at = start; at < script.length; ) {
    const character = script[at] as string;
    if (character === '"') return at + 1;
    if (character === "\\") {
      const next = script[at + 1] ?? "";
      into.add('$`"\\\n'.includes(next) ? next : `\\${next}`);
      at += 2;
    } else if (character === "$" && script[at + 1] === "(") {
      const end = closing(script, at + 2);
      into.addInner(script.slice(at + 2, end));
      at = end + 1;
    } else if (character === "`") {
      const end = endOf(script, at + 1, "`");
      into.addInner(script.slice(at + 1, end));
      at = end + 1;
    } else {
      into.add(character);
      at += 1;
    }
  }
  return script.length;
}

function readDocuments(script: string, start: number, marks: readonly string[]): { documents: string[]; next: number } {
  const documents: string[] = [];
  let at = start;
  for (const mark of marks) {
    const lines: string[] = [];
    while (at < script.length) {
      const end = endOf(script, at, "\n");
      const line = script.slice(at, end);
      at = end + 1;
      if (line.trim() === mark) break;
      lines.push(line);
    }
    documents.push(lines.join("\n"));
  }
  return { documents, next: at };
}

/**
 * Returns the index of the bracket that matches the opening bracket before `start`. Brackets in quotes do not count.
 */
function closing(script: string, start: number): number {
  const open = ["("];
  for (let at = start; at < script.length; at++) {
    const character = script[at] as string;
    const isQuoted = open.at(-1) === '"';
    if (character === "\\") at += 1;
    else if (character === '"') {
      if (isQuoted) open.pop();
      else open.push(character);
    } else if (isQuoted) {
      // In double quotes, only the brackets of a substitution count.
      if (character === "$" && script[at + 1] === "(") open.push(script[++at] as string);
    } else if (character === "'") at = endOf(script, at + 1, "'");
    else if (character === "(") open.push(character);
    else if (character === ")") {
      open.pop();
      if (open.length === 0) return at;
    }
  }
  return script.length;
}

function endOf(script: string, start: number, mark: string): number {
  const end = script.indexOf(mark, start);
  return end === -1 ? script.length : end;
}
