import type { Transform } from "node:stream";
import type { OutputChunk, Process } from "../sandbox/sandbox.ts";

/**
 * Returns the same process with secret values redacted in its output. No value enters through the network, but the
 * user's files may contain one. Redaction keeps every length, so that offsets stay correct. `outputRedactor` creates a
 * transform that does so, or null if there is nothing to redact.
 */
export function redactedProcess(
  process: Process,
  { outputRedactor, shownArgv }: { outputRedactor: () => Transform | null; shownArgv?: readonly string[] },
): Process {
  if (outputRedactor() === null) return process;
  return {
    ref: process.ref,
    pid: process.pid,
    ...(shownArgv && { shownArgv }),
    output: { [Symbol.asyncIterator]: () => redactOutput(process.output, outputRedactor) },
    ended: process.ended,
    discardOutput: () => process.discardOutput(),
    write: (data) => process.write(data),
    closeStdin: () => process.closeStdin(),
    resize: (size) => process.resize(size),
    signal: (name, options) => process.signal(name, options),
    kill: () => process.kill(),
    detach: () => process.detach(),
  };
}

async function* redactOutput(output: AsyncIterable<OutputChunk>, outputRedactor: () => Transform | null): AsyncGenerator<OutputChunk> {
  const streams = new Map<OutputChunk["stream"], { transform: Transform; position: number }>();
  for await (const chunk of output) {
    let state = streams.get(chunk.stream);
    if (state === undefined) {
      const transform = outputRedactor();
      if (transform === null) {
        yield chunk;
        continue;
      }
      state = { transform, position: chunk.offset };
      streams.set(chunk.stream, state);
    }
    state.transform.write(chunk.data);
    yield* drainTransform(state, chunk.stream);
  }
  for (const [stream, state] of streams) {
    state.transform.end();
    yield* drainTransform(state, stream);
  }
}

function* drainTransform(state: { transform: Transform; position: number }, stream: OutputChunk["stream"]): Generator<OutputChunk> {
  for (let data: Buffer | null = state.transform.read(); data !== null; data = state.transform.read()) {
    yield { stream, offset: state.position, data };
    state.position += data.length;
  }
}
