import type { CharacterTest } from "./pattern-characters.ts";
import { type PatternNode, parsePattern } from "./pattern-syntax.ts";

/**
 * A regular expression that matches in time proportional to the text times the expression: instead of backtracking, it
 * tries all alternatives at once. Its syntax is RE2's, as CEL requires, so it has no look-around or back-references.
 */
export interface LinearPattern {
  /** Returns whether the text contains a match. `spend` gets the number of steps taken, and may throw to stop. */
  matches(text: string, spend: (steps: number) => void): boolean;
}

/** The maximum size of a pattern with its repetitions expanded. */
const INSTRUCTIONS_MAX = 5_000;

type Instruction =
  | { do: "test"; test: CharacterTest }
  | { do: "split"; to: number; or: number }
  | { do: "jump"; to: number }
  | { do: "assert"; at: "start" | "end" | "lineStart" | "lineEnd" | "boundary" | "inside" }
  | { do: "match" };

/** Throws an Error that explains what is wrong with the pattern. */
export function compilePattern(pattern: string): LinearPattern {
  const program: Instruction[] = [];
  emit(parsePattern(pattern), program);
  program.push({ do: "match" });
  return { matches: (text, spend) => run(program, text, spend) };
}

function add(program: Instruction[], instruction: Instruction): number {
  if (program.length >= INSTRUCTIONS_MAX) throw new Error("the regular expression is too large");
  return program.push(instruction) - 1;
}

function emit(node: PatternNode, program: Instruction[]): void {
  switch (node.kind) {
    case "empty":
      return;
    case "test":
      add(program, { do: "test", test: node.test });
      return;
    case "assert":
      add(program, { do: "assert", at: node.at });
      return;
    case "all":
      for (const part of node.parts) emit(part, program);
      return;
    case "any":
      emitAny(node.parts, program);
      return;
    case "repeat":
      emitRepeat(node, program);
      return;
    default:
      node satisfies never;
  }
}

function emitAny(parts: readonly PatternNode[], program: Instruction[]): void {
  const ends: number[] = [];
  for (const [index, part] of parts.entries()) {
    if (index === parts.length - 1) {
      emit(part, program);
      continue;
    }
    const split = add(program, { do: "split", to: program.length + 1, or: 0 });
    emit(part, program);
    ends.push(add(program, { do: "jump", to: 0 }));
    program[split] = { do: "split", to: split + 1, or: program.length };
  }
  for (const end of ends) program[end] = { do: "jump", to: program.length };
}

function emitRepeat({ part, min, max }: Extract<PatternNode, { kind: "repeat" }>, program: Instruction[]): void {
  for (let count = 0; count < min; count += 1) emit(part, program);
  if (max === null) {
    const split = add(program, { do: "split", to: program.length + 1, or: 0 });
    emit(part, program);
    add(program, { do: "jump", to: split });
    program[split] = { do: "split", to: split + 1, or: program.length };
    return;
  }
  const splits: number[] = [];
  for (let count = min; count < max; count += 1) {
    splits.push(add(program, { do: "split", to: program.length + 1, or: 0 }));
    emit(part, program);
  }
  for (const split of splits) program[split] = { do: "split", to: split + 1, or: program.length };
}

/** Runs all threads of the program in parallel, character by character. */
function run(program: readonly Instruction[], text: string, spend: (steps: number) => void): boolean {
  let places: number[] = [];
  /** The last text position at which each instruction was reached: it is entered once per position. */
  const reachedAt = new Int32Array(program.length).fill(-1);
  const stack: number[] = [];
  let before = "";
  for (let at = 0; ; ) {
    const code = text.codePointAt(at);
    const character = code === undefined ? "" : String.fromCodePoint(code);
    const next: number[] = [];
    // A match may begin here.
    places.push(0);
    let steps = 0;
    for (const place of places) stack.push(place);
    stack.reverse();
    for (let place = stack.pop(); place !== undefined; place = stack.pop()) {
      if (reachedAt[place] === at) continue;
      reachedAt[place] = at;
      steps += 1;
      const instruction = program[place] as Instruction;
      if (instruction.do === "match") {
        spend(steps);
        return true;
      }
      if (instruction.do === "jump") stack.push(instruction.to);
      else if (instruction.do === "split") stack.push(instruction.or, instruction.to);
      else if (instruction.do === "assert") {
        if (holds(instruction.at, before, character)) stack.push(place + 1);
      } else if (code !== undefined && instruction.test(code)) next.push(place + 1);
    }
    spend(steps);
    if (code === undefined) return false;
    places = next;
    before = character;
    at += character.length;
  }
}

const isWord = (character: string) => /^\w$/.test(character);

function holds(at: Extract<Instruction, { do: "assert" }>["at"], before: string, after: string): boolean {
  switch (at) {
    case "start":
      return before === "";
    case "end":
      return after === "";
    case "lineStart":
      return before === "" || before === "\n";
    case "lineEnd":
      return after === "" || after === "\n";
    case "boundary":
      return isWord(before) !== isWord(after);
    case "inside":
      return isWord(before) === isWord(after);
    default:
      return at satisfies never;
  }
}
