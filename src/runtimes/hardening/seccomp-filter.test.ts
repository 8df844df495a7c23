import { spawnSync } from "node:child_process";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { tries } from "../../../test/support/thorough.ts";
import { type OciSeccomp, seccompProfile } from "./seccomp.ts";
import { compileSeccomp } from "./seccomp-filter.ts";
import { outcomes } from "./seccomp-fixture.ts";
import { systemCallNumbers } from "./system-call-numbers.ts";

const audits = { x64: 0xc000_003e, arm64: 0xc000_00b7, i386: 0x4000_0003 };
const variants = (["x64", "arm64"] as const).flatMap((arch) => [false, true].map((writesToHost) => ({ arch, writesToHost })));

interface Call {
  audit: number;
  number: number;
  args?: readonly bigint[];
}

/** Runs a filter as the kernel does, and returns its answer. */
function answer(filter: Buffer, { audit, number, args = [] }: Call): string {
  const data = Buffer.alloc(64);
  data.writeUInt32LE(number >>> 0, 0);
  data.writeUInt32LE(audit, 4);
  for (const [index, value] of args.entries()) data.writeBigUInt64LE(value, 16 + 8 * index);
  let accumulator = 0;
  for (let at = 0; ; at += 8) {
    const value = filter.readUInt32LE(at + 4);
    const jump = (holds: boolean) => {
      at += 8 * filter.readUInt8(at + (holds ? 2 : 3));
    };
    const code = filter.readUInt16LE(at);
    if (code === 0x20) accumulator = data.readUInt32LE(value);
    else if (code === 0x54) accumulator = (accumulator & value) >>> 0;
    else if (code === 0x05) at += 8 * value;
    else if (code === 0x15) jump(accumulator === value);
    else if (code === 0x25) jump(accumulator > value);
    else if (code === 0x35) jump(accumulator >= value);
    else if (code === 0x06) return value === 0x7fff_0000 ? "allowed" : value === 0x8000_0000 ? "killed" : `errno ${value - 0x0005_0000}`;
    else throw new Error(`unknown instruction ${code}`);
  }
}

describe.each(variants)("the compiled filter of $arch (writes to the host: $writesToHost)", ({ arch, writesToHost }) => {
  const profile = seccompProfile({ arch, writesToHost });
  const filter = compileSeccomp(profile);
  const audit = audits[arch];
  const numbers = systemCallNumbers[arch];
  const interesting = fc.constantFrom(...boundaries(profile));
  const word = fc.oneof(fc.bigInt(0n, 2n ** 64n - 1n), fc.bigInt(0n, 40n), interesting);

  it("answers every call as the rules do, for any arguments", () => {
    for (const [name, number] of numbers) {
      const same = (args: readonly bigint[]) => {
        expect([answer(filter, { audit, number, args })], name).toEqual(outcomes(profile.syscalls, name, args));
      };
      const looksAtArguments = profile.syscalls.some((rule) => rule.args !== undefined && rule.names.includes(name));
      fc.assert(fc.property(fc.array(word, { minLength: 6, maxLength: 6 }), same), { numRuns: looksAtArguments ? tries(500) : 3 });
    }
  });

  it("answers unassigned numbers as the kernel does", () => {
    const known = new Set(numbers.values());
    const unknown = Array.from({ length: 1024 }, (_, number) => number).filter((number) => !known.has(number));
    for (const number of [...unknown, 0x3fff_ffff, -1]) expect(answer(filter, { audit, number })).toBe("errno 38");
  });

  it("kills callers that use another entry point", () => {
    for (const other of Object.values(audits).filter((value) => value !== audit))
      for (const number of [0, 1, 59]) expect(answer(filter, { audit: other, number })).toBe("killed");
    for (const number of [0x4000_0000, 0x4000_0001, 0x7fff_ffff, -2])
      expect(answer(filter, { audit, number })).toBe(arch === "x64" ? "killed" : "errno 38");
  });

  it("stays within the kernel's size limit", () => {
    expect(filter.length / 8).toBeLessThan(1500);
    const names = ["read", "openat", "futex", "clock_gettime"];
    expect(names.every((name) => answer(filter, { audit, number: numbers.get(name) ?? -1 }) === "allowed")).toBe(true);
  });
});

/** Returns the values that rules compare with, and their neighbors. */
function boundaries(profile: OciSeccomp): bigint[] {
  const values = profile.syscalls.flatMap(({ args = [] }) => args.flatMap(({ value, valueTwo = 0 }) => [BigInt(value), BigInt(valueTwo)]));
  return [...new Set(values.flatMap((value) => [value, value + 1n, value + 2n ** 32n, ...(value > 0n ? [value - 1n] : [])]))];
}

describe("system call numbers", () => {
  // Headers also define the number of calls, and on arm64 where its own range starts: `arch_specific_syscall`.
  const callsIn = (macros: string) =>
    [...macros.matchAll(/^#define __NR_(\w+) (\d+)$/gm)].filter(([, name = ""]) => !/syscalls?$/.test(name));
  const headers = spawnSync("cc", ["-E", "-dM", "-"], { input: "#include <asm/unistd.h>\n", encoding: "utf8" });
  it.skipIf(headers.status !== 0)("match this machine's headers", () => {
    const numbers: ReadonlyMap<string, number> | undefined = Object.entries(systemCallNumbers).find(([arch]) => arch === process.arch)?.[1];
    const known = callsIn(headers.stdout);
    expect(known.length).toBeGreaterThan(250);
    expect(known.filter(([, name = "", number]) => numbers?.get(name) !== Number(number)).map(([line]) => line)).toEqual([]);
  });

  const generic = spawnSync(
    "cc",
    ["-E", "-dM", "-D__ARCH_WANT_RENAMEAT", "-D__ARCH_WANT_NEW_STAT", "-D__ARCH_WANT_SET_GET_RLIMIT", "-D__ARCH_WANT_MEMFD_SECRET", "-"],
    { input: "#include <asm-generic/unistd.h>\n", encoding: "utf8" },
  );
  it.skipIf(generic.status !== 0)("match the generic headers on arm64", () => {
    const known = callsIn(generic.stdout);
    expect(known.length).toBeGreaterThan(250);
    expect(known.filter(([, name = "", number]) => systemCallNumbers.arm64.get(name) !== Number(number)).map(([line]) => line)).toEqual([]);
  });
});
