import { writeFile } from "node:fs/promises";
import { extname, join } from "node:path";
import { z } from "zod";
import { CaissonError, type ErrorCode, errorCodes } from "../../../contract/error.ts";
import { runProgram } from "./run-program.ts";
import type { UnpackRequest } from "./unpack-image.ts";

/** Runs a program as root of the sandboxes' user namespace and gives the lines it wrote. Rejects when it fails. */
export type RunInside = (argv: readonly string[], options: { timeoutMs: number; signal?: AbortSignal | undefined }) => Promise<string[]>;

const Answer = z.union([
  z.object({ counts: z.object({ entries: z.number(), bytes: z.number(), leftOut: z.number() }) }),
  z.object({ error: z.object({ code: z.string(), message: z.string(), hint: z.string().optional() }) }),
]);

/**
 * Unpacks in a process of its own; as root of a user namespace where `inside` is given. Throws what `unpackImage`
 * throws, and `cancelled`, `timeout`.
 */
export async function unpackInProcess(options: {
  request: UnpackRequest;
  /** A folder of ours for the request; not the target. */
  folder: string;
  timeoutMs: number;
  inside?: RunInside | undefined;
  signal?: AbortSignal | undefined;
}): Promise<{ entries: number; bytes: number; leftOut: number }> {
  const { timeoutMs, signal } = options;
  const requestFile = join(options.folder, "request.json");
  await writeFile(requestFile, JSON.stringify(options.request), { mode: 0o644 });
  const program = join(import.meta.dirname, `unpack-main${extname(import.meta.filename)}`);
  const argv: [string, ...string[]] = [process.execPath, "--no-warnings", program, requestFile];
  const lines =
    options.inside === undefined
      ? (await runProgram({ argv, env: {}, timeoutMs, signal, missing: { hint: "The program's own Node is missing." } })).stdout.split("\n")
      : await options.inside(argv, { timeoutMs, signal });
  const answer = Answer.safeParse(parsed(lines.find((line) => line.startsWith("{")) ?? ""));
  if (!answer.success) throw new CaissonError("internal", `unpacking to ${options.request.target} ended without an answer`);
  if ("counts" in answer.data) return answer.data.counts;
  const { code, message, hint } = answer.data.error;
  throw new CaissonError(isErrorCode(code) ? code : "internal", message, hint === undefined ? {} : { hint });
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

const isErrorCode = (code: string): code is ErrorCode => Object.hasOwn(errorCodes, code);
