import { writeFile } from "node:fs/promises";
import { extname, join } from "node:path";
import { z } from "zod";
import { CaissonError, type ErrorCode, errorCodes } from "../../../contract/error/error.ts";
import { jsonOrNull } from "../../../lib/failures.ts";
import { runProgram } from "./run-program.ts";
import type { UnpackRequest } from "./unpack-image.ts";

/**
 * Runs a program as root of the sandboxes' user namespace, and returns the lines that it wrote. Rejects if it fails.
 */
export type RunInside = (argv: readonly string[], options: { timeoutMs: number; signal?: AbortSignal | undefined }) => Promise<string[]>;

const Answer = z.union([
  z.object({ counts: z.object({ entries: z.number(), bytes: z.number(), leftOut: z.number() }) }),
  z.object({ error: z.object({ code: z.string(), message: z.string(), hint: z.string().optional() }) }),
]);

/**
 * Unpacks in a separate process, as root of a user namespace if `inside` is given. Throws as `unpackImage` does, and
 * `cancelled`, `timeout`.
 */
export async function unpackInProcess(options: {
  request: UnpackRequest;
  /** Our folder for the request, not the target. */
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
      ? (
          await runProgram({ argv, env: {}, timeoutMs, signal, missing: { hint: "Reinstall Caisson: its own Node is missing." } })
        ).stdout.split("\n")
      : await options.inside(argv, { timeoutMs, signal });
  const answer = Answer.safeParse(jsonOrNull(lines.find((line) => line.startsWith("{")) ?? ""));
  if (!answer.success) throw new CaissonError("internal", `unpacking to ${options.request.target} ended without an answer`);
  if ("counts" in answer.data) return answer.data.counts;
  const { code, message, hint } = answer.data.error;
  throw new CaissonError(isErrorCode(code) ? code : "internal", message, hint === undefined ? {} : { hint });
}

const isErrorCode = (code: string): code is ErrorCode => Object.hasOwn(errorCodes, code);
