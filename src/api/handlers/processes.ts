import type { ExecEvent } from "../../contract/api/exec.ts";
import type { Json } from "../../contract/api/routes.ts";
import { defined } from "../../lib/defined.ts";
import { textOrBase64 } from "../../lib/text-or-base64.ts";
import type { HeldSandbox, OutputChunk, Process } from "../../station/sandboxes/held-sandbox.ts";
import { type Call, type Handlers, nothing, type SentEvent } from "../call.ts";

type Name = Extract<keyof Handlers, `processes.${string}`>;
type OfProcess = Pick<Call<"processes.kill">, "station" | "params" | "signal">;

/**
 * A process has one listener at a time. While a request listens to one, others that write to it or signal it use that
 * request's handle, and do not take its output away.
 */
export function processHandlers(): Handlers<Name> {
  const listening = new Map<string, Process>();
  const withProcess = async ({ station, params, signal }: OfProcess, work: (process: Process) => Promise<void>) => {
    await using held = await station.sandboxes.hold(params.sandbox, { signal });
    const heard = listening.get(keyOf(held, params.process));
    if (heard !== undefined) {
      await givenUp(work(heard), signal);
      return nothing;
    }
    const process = await held.attach(params.process);
    try {
      await givenUp(work(process), signal);
    } finally {
      // What it wrote meanwhile was not taken, and is there for whoever listens next.
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
        return { json: await collected(process) };
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

/** A process that reads nothing may keep its writer waiting for ever; the caller need not wait with it. */
async function givenUp(work: Promise<void>, signal: AbortSignal): Promise<void> {
  const gone = Promise.withResolvers<void>();
  const leave = () => gone.resolve();
  if (signal.aborted) leave();
  signal.addEventListener("abort", leave, { once: true });
  try {
    await Promise.race([work, gone.promise]);
  } finally {
    signal.removeEventListener("abort", leave);
    work.catch(() => {});
  }
}

async function* eventsOf(process: Process, { follow }: { follow: boolean }): AsyncGenerator<SentEvent<ExecEvent>> {
  for await (const { stream, offset, data } of process.output) {
    yield { type: "output", data: { type: "output", stream, offset, ...textOrBase64(data) } };
  }
  const ended = await process.ended;
  if (follow || ended.kind !== "lost") yield { type: "ended", data: { type: "ended", ended } };
}

async function collected(process: Process): Promise<Json<"processes.output">> {
  const kept: Record<OutputChunk["stream"], { offset: number | undefined; chunks: Uint8Array[] }> = {
    stdout: { offset: undefined, chunks: [] },
    stderr: { offset: undefined, chunks: [] },
  };
  for await (const { stream, offset, data } of process.output) {
    kept[stream].offset ??= offset;
    kept[stream].chunks.push(data);
  }
  const ended = await process.ended;
  const told = ({ offset = 0, chunks }: (typeof kept)["stdout"]) => ({ offset, ...textOrBase64(Buffer.concat(chunks)) });
  return { ended: ended.kind === "lost" ? null : ended, stdout: told(kept.stdout), stderr: told(kept.stderr) };
}
