import type { Process, Sandbox } from "../../sandbox/sandbox.ts";
import { type Grade, parseGrade } from "./parse-grade.ts";

/** How much of the end of each stream is kept while the grader runs. */
const TAIL_CHARACTERS_MAX = 64 * 1024;

/** Runs a grader's shell command in the workspace, and reads its exit code and score. */
export async function runGrader(
  sandbox: Sandbox,
  { command, timeoutMs, signal }: { command: string; timeoutMs: number; signal: AbortSignal },
): Promise<Grade> {
  const process = await sandbox.spawn({ argv: ["/bin/sh", "-c", command], timeoutMs });
  const kill = () => void process.kill();
  if (signal.aborted) kill();
  signal.addEventListener("abort", kill, { once: true });
  try {
    const tails = await tailsOf(process);
    const ended = await process.ended;
    signal.throwIfAborted();
    const why = ended.kind === "exited" ? "" : `\nThe grader did not exit by itself: ${ended.kind}.`;
    return parseGrade({ exitCode: ended.kind === "exited" ? ended.exitCode : null, stdout: tails.stdout, stderr: `${tails.stderr}${why}` });
  } finally {
    signal.removeEventListener("abort", kill);
  }
}

async function tailsOf({ output }: Process): Promise<{ stdout: string; stderr: string }> {
  const texts = { stdout: "", stderr: "" };
  const decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() };
  for await (const { stream, data } of output)
    texts[stream] = (texts[stream] + decoders[stream].decode(data, { stream: true })).slice(-TAIL_CHARACTERS_MAX);
  return texts;
}
