import type { ExecCommand, ExecEvent, ExecResult } from "../../contract/api/exec.ts";
import type { Ended } from "../../contract/outcome.ts";
import { defined } from "../../lib/defined.ts";
import { ignore } from "../../lib/failures.ts";
import { textOrBase64 } from "../../lib/text-or-base64.ts";
import type { HeldSandbox, OutputChunk, Process } from "../../verbs/held-sandbox.ts";
import type { Handlers, SentEvent } from "../call.ts";

/** The maximum output in one JSON answer, for both streams together. */
const COLLECT_BYTES_MAX = 10 * 1024 * 1024;

/** A command belongs to its request: it ends if the client disconnects. */
export const execHandlers: Handlers<"sandboxes.exec"> = {
  async "sandboxes.exec"({ station, params, body, wants, signal }) {
    const held = await station.sandboxes.hold(params.sandbox, { signal });
    try {
      const process = await startExec(held, body, signal);
      if (wants === "events") return { events: eventsOf(process), release: () => held.release() };
      return { json: await collect(process) };
    } finally {
      if (wants === "json") await held.release();
    }
  },
};

/** Starts a command that ends when the signal aborts. */
export async function startExec(held: HeldSandbox, { input, ...command }: ExecCommand, signal: AbortSignal): Promise<Process> {
  const process = await held.spawn({ ...defined(command), stdin: input === undefined ? "closed" : "pipe" });
  const kill = () => void ignore(process.kill(), "the process has ended, or ends with the sandbox");
  if (signal.aborted) kill();
  else signal.addEventListener("abort", kill, { once: true });
  void process.ended.then(() => signal.removeEventListener("abort", kill));
  if (input !== undefined) void ignore(feed(process, input), "a process may end without reading its input");
  return process;
}

async function feed(process: Process, input: string): Promise<void> {
  await process.write(Buffer.from(input));
  await process.closeStdin();
}

async function* eventsOf(process: Process): AsyncGenerator<SentEvent<ExecEvent>> {
  for await (const { stream, offset, data } of process.output) {
    yield { type: "output", data: { type: "output", stream, offset, ...textOrBase64(data) } };
  }
  yield { type: "ended", data: { type: "ended", ended: await process.ended } };
}

async function collect(process: Process): Promise<ExecResult> {
  const chunks: Record<OutputChunk["stream"], Uint8Array[]> = { stdout: [], stderr: [] };
  let left = COLLECT_BYTES_MAX;
  let truncated = false;
  for await (const { stream, data } of process.output) {
    const part = data.subarray(0, left);
    truncated ||= part.length < data.length;
    left -= part.length;
    chunks[stream].push(part);
  }
  const ended: Ended = await process.ended;
  return { ended, stdout: textOrBase64(Buffer.concat(chunks.stdout)), stderr: textOrBase64(Buffer.concat(chunks.stderr)), truncated };
}
