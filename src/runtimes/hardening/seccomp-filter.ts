import { CaissonError } from "../../contract/error/error.ts";
import type { OciSeccomp, SeccompArgument, SeccompRule } from "./seccomp.ts";
import { systemCallNumbers } from "./system-call-numbers.ts";

/** Instructions of classic BPF, the format of the kernel's system-call filters. */
const LOAD = 0x20;
const AND = 0x54;
const JUMP = 0x05;
const JUMP_IF_EQUAL = 0x15;
const JUMP_IF_GREATER = 0x25;
const JUMP_IF_AT_LEAST = 0x35;
const RETURN = 0x06;
const JUMP_MAX = 255;
const INSTRUCTION_BYTES = 8;

const KILL_PROCESS = 0x8000_0000;
const ALLOW = 0x7fff_0000;
const ERRNO = 0x0005_0000;

/** Offsets in struct seccomp_data. Arguments are 64 bits each, the lower word first. */
const NUMBER_AT = 0;
const ARCHITECTURE_AT = 4;
const ARGUMENTS_AT = 16;

const WORD = 2 ** 32;
const processors: Readonly<Record<string, { audit: number; numbers: ReadonlyMap<string, number>; x32: boolean }>> = {
  SCMP_ARCH_X86_64: { audit: 0xc000_003e, numbers: systemCallNumbers.x64, x32: true },
  SCMP_ARCH_AARCH64: { audit: 0xc000_00b7, numbers: systemCallNumbers.arm64, x32: false },
};
/** Numbers from here on belong to x32, except -1, with which a debugger marks a call to skip. */
const X32_FIRST = 0x4000_0000;
const NO_CALL = 0xffff_ffff;

/**
 * Compiles the filter to the form that the kernel runs; an OCI runtime would have libseccomp compile the same rules
 * each time. A binary search finds a call in ten steps instead of hundreds. A program that enters the kernel other than
 * through the processor's native 64-bit entry point is killed.
 */
export function compileSeccomp({ architectures: [architecture = ""], defaultErrnoRet, syscalls }: OciSeccomp): Buffer {
  const processor = processors[architecture];
  if (processor === undefined) throw new CaissonError("unsupported", `system-call filters do not support ${architecture}`);
  const program = new ReverseProgram();
  const otherwise = ERRNO + defaultErrnoRet;
  const known = program.decide(decisions(syscalls, { numbers: processor.numbers, otherwise }), otherwise);
  if (processor.x32) {
    const killed = program.return(KILL_PROCESS);
    const x32 = program.jump(JUMP_IF_EQUAL, NO_CALL, { yes: known, no: killed });
    program.jump(JUMP_IF_AT_LEAST, X32_FIRST, { yes: x32, no: known });
  }
  program.load(NUMBER_AT);
  const ours = program.start;
  program.jump(JUMP_IF_EQUAL, processor.audit, { yes: ours, no: program.return(KILL_PROCESS) });
  program.load(ARCHITECTURE_AT);
  return program.bytes();
}

/** The decision for calls from `first` up to the next decision: an answer, or rules that check arguments. */
interface SyscallDecision {
  first: number;
  answer: number | readonly SeccompRule[];
}

function decisions(rules: readonly SeccompRule[], options: { numbers: ReadonlyMap<string, number>; otherwise: number }): SyscallDecision[] {
  const byNumber = new Map<number, SeccompRule[]>();
  for (const rule of rules) {
    for (const name of rule.names) {
      const number = options.numbers.get(name);
      if (number === undefined) throw new CaissonError("internal", `the system call ${name} has no known number`);
      byNumber.set(number, [...(byNumber.get(number) ?? []), rule]);
    }
  }
  const decided: SyscallDecision[] = [];
  const last = Math.max(...byNumber.keys());
  for (let number = 0; number <= last + 1; number++) {
    const found = byNumber.get(number) ?? [];
    const plain = found.find(({ args }) => args === undefined);
    const answer = plain !== undefined ? answerOf(plain) : found.length > 0 ? found : options.otherwise;
    if (decided.at(-1)?.answer !== answer) decided.push({ first: number, answer });
  }
  return decided;
}

function answerOf(rule: SeccompRule): number {
  return rule.action === "SCMP_ACT_ALLOW" ? ALLOW : ERRNO + (rule.errnoRet ?? 0);
}

/**
 * A program that is written from its end to its start. Jumps only go forward, so their targets already exist. Positions
 * count from the end.
 */
class ReverseProgram {
  #instructions: { code: number; yes: number; no: number; value: number }[] = [];
  #returns = new Map<number, number>();

  /** The instruction written last, which runs first. */
  get start(): number {
    return this.#instructions.length - 1;
  }

  bytes(): Buffer {
    const bytes = Buffer.alloc(this.#instructions.length * INSTRUCTION_BYTES);
    this.#instructions.toReversed().forEach((instruction, index) => {
      const at = index * INSTRUCTION_BYTES;
      bytes.writeUInt16LE(instruction.code, at);
      bytes.writeUInt8(instruction.yes, at + 2);
      bytes.writeUInt8(instruction.no, at + 3);
      bytes.writeUInt32LE(instruction.value, at + 4);
    });
    return bytes;
  }

  load(offset: number): number {
    return this.#put({ code: LOAD, yes: 0, no: 0, value: offset });
  }

  /** Returns a matching return instruction within jump distance, or adds one. */
  return(answer: number): number {
    const known = this.#returns.get(answer);
    // Up to two more instructions may be written before the jump.
    if (known !== undefined && this.start - known < JUMP_MAX - 2) return known;
    const place = this.#put({ code: RETURN, yes: 0, no: 0, value: answer });
    this.#returns.set(answer, place);
    return place;
  }

  jump(code: number, value: number, to: { yes: number; no: number }): number {
    const distance = (place: number) => this.start - place;
    if (distance(to.yes) > JUMP_MAX || distance(to.no) > JUMP_MAX) throw new CaissonError("internal", "a jump in the filter is too long");
    return this.#put({ code, yes: distance(to.yes), no: distance(to.no), value });
  }

  /** Halves the list of decisions until one remains. */
  decide(among: readonly SyscallDecision[], otherwise: number): number {
    const [only] = among;
    if (among.length === 1 && only !== undefined)
      return typeof only.answer === "number" ? this.return(only.answer) : this.#byArguments(only.answer, otherwise);
    const middle = Math.ceil(among.length / 2);
    const upper = this.decide(among.slice(middle), otherwise);
    const lower = this.decide(among.slice(0, middle), otherwise);
    return this.#jumpFar(JUMP_IF_AT_LEAST, among[middle]?.first ?? 0, { yes: upper, no: lower });
  }

  /** Tries the rules in order. A call that matches no rule gets the answer for unknown calls. */
  #byArguments(rules: readonly SeccompRule[], otherwise: number): number {
    let next = this.#put({ code: RETURN, yes: 0, no: 0, value: otherwise });
    for (const rule of rules.toReversed()) {
      const unfit = next;
      next = this.return(answerOf(rule));
      for (const argument of (rule.args ?? []).toReversed()) next = this.#compare(argument, { yes: next, no: unfit });
    }
    return next;
  }

  #compare({ index, op, value, valueTwo = 0 }: SeccompArgument, to: { yes: number; no: number }): number {
    const low = ARGUMENTS_AT + 8 * index;
    const [lower, upper] = [value % WORD, Math.floor(value / WORD)];
    switch (op) {
      case "SCMP_CMP_EQ": {
        const same = this.#test(low, JUMP_IF_EQUAL, lower, to);
        return this.#test(low + 4, JUMP_IF_EQUAL, upper, { yes: same, no: to.no });
      }
      case "SCMP_CMP_GT": {
        const greater = this.#test(low, JUMP_IF_GREATER, lower, to);
        const same = this.#test(low + 4, JUMP_IF_EQUAL, upper, { yes: greater, no: to.no });
        return this.#test(low + 4, JUMP_IF_GREATER, upper, { yes: to.yes, no: same });
      }
      case "SCMP_CMP_MASKED_EQ": {
        const same = this.#testMasked(low, lower, valueTwo % WORD, to);
        if (upper === 0) return same;
        return this.#testMasked(low + 4, upper, Math.floor(valueTwo / WORD), { yes: same, no: to.no });
      }
      default:
        throw new CaissonError("internal", `the filter cannot compare by ${op}`);
    }
  }

  #test(offset: number, code: number, value: number, to: { yes: number; no: number }): number {
    this.#jumpFar(code, value, to);
    return this.load(offset);
  }

  #testMasked(offset: number, mask: number, value: number, to: { yes: number; no: number }): number {
    this.#jumpFar(JUMP_IF_EQUAL, value, to);
    this.#put({ code: AND, yes: 0, no: 0, value: mask });
    return this.load(offset);
  }

  /** A conditional jump beyond its maximum distance goes through an unconditional one. */
  #jumpFar(code: number, value: number, to: { yes: number; no: number }): number {
    const near = (place: number) =>
      this.start - place < JUMP_MAX - 1 ? place : this.#put({ code: JUMP, yes: 0, no: 0, value: this.start - place });
    const yes = near(to.yes);
    return this.jump(code, value, { yes, no: near(to.no) });
  }

  #put(instruction: { code: number; yes: number; no: number; value: number }): number {
    return this.#instructions.push(instruction) - 1;
  }
}
