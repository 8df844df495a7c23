import type { ExecEvent } from "../../contract/api/exec.ts";
import { defined } from "../../lib/defined.ts";
import { ignore } from "../../lib/failures.ts";
import { textOrBase64 } from "../../lib/text-or-base64.ts";
import type { HeldSandbox, OutputChunk, Process } from "../../verbs/held-sandbox.ts";
import type { Json } from "../../verbs/routes.ts";
import { type Call, type Handlers, nothing, type SentEvent } from "../call.ts";

type Name = Extract<keyof Handlers, `processes.${string}`>;
type OfProcess = Pick<Call<"processes.kill">, "station" | "params" | "signal">;

/**
 * A process has one listener at a time. While a request listens, requests that write to the process or signal it use
 * the same handle, and do not take its output away.
 */
export function processHandlers(): Handlers<Name> {
  const listening = new Map<string, Process>();
  const withProcess = async ({ station, params, signal }: OfProcess, work: (process: Process) => Promise<void>) => {
    await using held = await station.sandboxes.hold(params.sandbox, { signal });
    const listener = listening.get(keyOf(held, params.process));
    if (listener !== undefined) {
      await waitUnlessAborted(work(listener), signal);
      return nothing;
    }
    const process = await held.attach(params.process);
    try {
      await waitUnlessAborted(work(process), signal);
    } finally {
      // Output in the meantime was not consumed, and is stored for the next listener.
      process.detach();
    }
    return nothing;
  };
  return {
    async "processes.list"({ station, params, signal }) {
      await using held = await station.sandboxes.hold(params.sandbox, { signal });
      return { json: { processes: await held.processes() } };
    },
    async "processes.start"({ station, params, body, signal }) {
      await using held = await station.sandboxes.hold(params.sandbox, { signal });
      const process = await held.spawn(defined(body));
      const { ref, pid } = process;
      process.detach();
      return { json: { ref, pid } };
    },
    async "processes.output"({ station, params, query, wants, signal }) {
      const held = await station.sandboxes.hold(params.sandbox, { signal });
      let process: Process | undefined;
      const key = keyOf(held, params.process);
      const detach = () => process?.detach();
      const release = async () => {
        signal.removeEventListener("abort", detach);
        if (listening.get(key) === process) listening.delete(key);
        detach();
        await held.release();
      };
      try {
        const follow = wants === "events" && query.follow !== false;
        process = await held.attach(params.process, { ...defined(query), follow });
        signal.addEventListener("abort", detach, { once: true });
        if (wants === "events") {
          if (follow) listening.set(key, process);
          return { events: eventsOf(process, { follow }), release };
        }
        return { json: await collectOutput(process) };
      } catch (error) {
        wants = "json";
        throw error;
      } finally {
        if (wants === "json") await release();
      }
    },
    "processes.input": (call) =>
      withProcess(call, async (process) => {
        for await (const chunk of call.body) await process.write(chunk);
      }),
    "processes.closeInput": (call) => withProcess(call, (process) => process.closeStdin()),
    "processes.resize": (call) => withProcess(call, (process) => process.resize(call.body)),
    "processes.signal": (call) =>
      withProcess(call, (process) => process.signal(call.body.signal as NodeJS.Signals, { scope: call.body.scope })),
    "processes.kill": (call) => withProcess(call, (process) => process.kill()),
    async "processes.forget"({ station, params, signal }) {
      await using held = await station.sandboxes.hold(params.sandbox, { signal });
      await held.forget(params.process);
      return nothing;
    },
  };
}

const keyOf = (held: HeldSandbox, ref: string) => `${held.id} ${ref}`;

/** Stops waiting when the signal aborts: a process that reads nothing may block its writer indefinitely. */
async function waitUnlessAborted(work: Promise<void>, signal: AbortSignal): Promise<void> {
  const left = Promise.withResolvers<void>();
  const leave = () => left.resolve();
  if (signal.aborted) leave();
  signal.addEventListener("abort", leave, { once: true });
  try {
    await Promise.race([work, left.promise]);
  } finally {
    signal.removeEventListener("abort", leave);
    void ignore(work, "the client has disconnected");
  }
}

async function* eventsOf(process: Process, { follow }: { follow: boolean }): AsyncGenerator<SentEvent<ExecEvent>> {
  for await (const { stream, offset, data } of process.output) {
    yield { type: "output", data: { type: "output", stream, offset, ...textOrBase64(data) } };
  }
  const ended = await process.ended;
  if (follow || ended.kind !== "lost") yield { type: "ended", data: { type: "ended", ended } };
}

async function collectOutput(process: Process): Promise<Json<"processes.output">> {
  const streams: Record<OutputChunk["stream"], { offset: number | undefined; chunks: Uint8Array[] }> = {
    stdout: { offset: undefined, chunks: [] },
    stderr: { offset: undefined, chunks: [] },
  };
  for await (const { stream, offset, data } of process.output) {
    streams[stream].offset ??= offset;
    streams[stream].chunks.push(data);
  }
  const ended = await process.ended;
  const describe = ({ offset = 0, chunks }: (typeof streams)["stdout"]) => ({ offset, ...textOrBase64(Buffer.concat(chunks)) });
  return { ended: ended.kind === "lost" ? null : ended, stdout: describe(streams.stdout), stderr: describe(streams.stderr) };
}
