import type { Ended } from "../../../contract/outcome.ts";
import { SandboxConfig } from "../../../contract/sandbox/sandbox.ts";
import { ignore } from "../../../lib/failures.ts";
import type { OutputChunk, Process, SpawnOptions } from "../../../sandbox/sandbox.ts";
import { type Defect, forgiving, noop, nothing, notWhatItIs } from "./broken-runtime.ts";

async function* mapOutput(process: Process, change: (chunk: OutputChunk) => OutputChunk): AsyncGenerator<OutputChunk> {
  for await (const chunk of process.output) yield change(chunk);
}

async function* only(process: Process, keeps: (chunk: OutputChunk) => boolean): AsyncGenerator<OutputChunk> {
  for await (const chunk of process.output) if (keeps(chunk)) yield chunk;
}

const outcome = (change: (ended: Ended) => object) => (good: Process) => ({
  ended: good.ended.then((ended) => ({ ...ended, ...change(ended) }) as Ended),
});

const without =
  (...names: (keyof SpawnOptions)[]) =>
  (options: SpawnOptions): SpawnOptions =>
    Object.fromEntries(Object.entries(options).filter(([name]) => !names.includes(name as keyof SpawnOptions))) as unknown as SpawnOptions;

/** Ends a process by a single signal after its timeout, and reports a timeout. */
function ownTimeout(signal: NodeJS.Signals, scope: "tree" | "leader") {
  return {
    spawn: without("timeoutMs"),
    process(good: Process, options: SpawnOptions | null): Partial<Process> {
      if (options?.timeoutMs === undefined) return {};
      setTimeout(() => ignore(good.signal(signal, { scope }), "the process has ended"), options.timeoutMs);
      return { ended: good.ended.then((ended) => ({ ...ended, kind: "timedOut" }) as Ended) };
    },
  };
}

let calls = 0;

/** Defects of processes: one for each test whose name starts with process, stdin, terminal, ending or attach. */
export const processDefects: Record<string, Defect> = {
  "process: stdout and stderr are kept apart": {
    what: "everything arrives as stdout",
    process: (good) => ({ output: mapOutput(good, (chunk) => ({ ...chunk, stream: "stdout" })) }),
  },
  "process: output is byte-exact, even if binary and on both streams": {
    what: "output is treated as text",
    process: (good) => ({ output: mapOutput(good, (chunk) => ({ ...chunk, data: Buffer.from(Buffer.from(chunk.data).toString()) })) }),
  },
  "process: exit codes are reported unchanged": {
    what: "exit codes are truncated to seven bits",
    process: outcome((ended) => (ended.kind === "exited" ? { exitCode: ended.exitCode & 0x7f } : {})),
  },
  "process: a process killed by a signal reports which": {
    what: "a signal becomes an exit code",
    process: outcome((ended) => (ended.kind === "signaled" ? { kind: "exited", exitCode: 137 } : {})),
  },
  "process: arguments arrive unchanged": {
    what: "white space in arguments is folded",
    spawn: (options) => ({ ...options, argv: options.argv.map((each) => each.replace(/\s+/g, " ")) }),
  },
  "process: a missing program is not_found": {
    what: "a missing program gives the wrong error",
    sandbox: (good) => ({ spawn: (options) => forgiving("not_found", () => good.spawn(options), notWhatItIs) }),
  },
  "process: a file without execute permission is denied": {
    what: "a file without execute permission gives the wrong error",
    sandbox: (good) => ({ spawn: (options) => forgiving("denied", () => good.spawn(options), notWhatItIs) }),
  },
  "process: a missing cwd is not_found": { what: "the cwd is ignored", spawn: without("cwd") },
  "process: the cwd is the requested one, or /workspace by default": { what: "the cwd is ignored", spawn: without("cwd") },
  "process: a command's variables win over the sandbox's; the host's do not leak": {
    what: "the sandbox's variables are forgotten",
    config: (config) => ({ ...config, env: {} }),
  },
  "process: PATH, HOME, USER and LANG have defaults": {
    what: "HOME is empty",
    spawn: (options) => ({ ...options, env: { ...options.env, HOME: "" } }),
  },
  "process: the default user is not root": {
    what: "commands run as root",
    capabilities: (good) => ({ ...good, isolation: 1 }),
    process: (good) => ({ output: mapOutput(good, (chunk) => ({ ...chunk, data: Buffer.from("0\n") })) }),
  },
  "process: root is denied unless the config allows it": {
    what: "the requested user is ignored",
    capabilities: (good) => ({ ...good, isolation: 1 }),
    spawn: without("user"),
  },
  "process: root works if the config allows it": {
    what: "the requested user is ignored",
    capabilities: (good) => ({ ...good, rootUser: true }),
    config: (config) => ({ ...config, allowRoot: false }),
    spawn: without("user"),
  },
  "process: allowRoot is unsupported if the runtime has no root": {
    what: "root is accepted but not provided",
    capabilities: (good) => ({ ...good, rootUser: false }),
    config: (config) => ({ ...config, allowRoot: false }),
  },
  "process: a hundred concurrent processes each have their own output": {
    what: "one process of many loses its output",
    process(good) {
      calls += 1;
      if (calls % 50 !== 0) return {};
      good.discardOutput();
      return { output: nothing() };
    },
  },
  "process: ended resolves if the consumer discards the output": {
    what: "discarding does nothing",
    process: () => ({ discardOutput() {} }),
  },
  "process: a slow consumer slows the process down and loses nothing": {
    what: "output is consumed before it is requested",
    process(good) {
      const chunks: OutputChunk[] = [];
      const reading = (async () => {
        for await (const chunk of good.output) chunks.push(chunk);
      })();
      const output = (async function* () {
        await reading;
        yield* chunks;
      })();
      return { output };
    },
  },
  "process: a running process is listed with its ref and pid": {
    what: "the list is empty",
    sandbox: () => ({ processes: async () => [] }),
  },
  "process: a file that a command wrote can be read": {
    what: "files are read from elsewhere",
    sandbox: () => ({ readFile: async () => nothing() }),
  },
  "stdin: closed gives end-of-file immediately": { what: "stdin is never closed", spawn: (options) => ({ ...options, stdin: "pipe" }) },
  "stdin: closed is the default, and writing to it is invalid": { what: "writing goes nowhere", process: () => ({ write: noop }) },
  "stdin: a pipe delivers all bytes until it is closed": { what: "closing does nothing", process: () => ({ closeStdin: noop }) },
  "stdin: the reply to a line arrives before the next line is written": {
    what: "output arrives only at the end",
    process(good) {
      const output = (async function* () {
        const chunks: OutputChunk[] = [];
        for await (const chunk of good.output) chunks.push(chunk);
        yield* chunks;
      })();
      return { output };
    },
  },
  "stdin: ten megabytes in, ten megabytes out": {
    what: "the last byte of a large write is lost",
    process: (good) => ({ write: (data) => good.write(data.length > 100_000 ? data.subarray(0, -1) : data) }),
  },
  "stdin: a write waits for a process that does not read": {
    what: "writes are queued without a limit",
    process: (good) => ({
      async write(data) {
        void ignore(good.write(data), "this is the defect");
      },
    }),
  },
  "stdin: writing to an ended process is gone": {
    what: "writing to an ended process succeeds",
    process: (good) => ({ write: (data) => forgiving("gone", () => good.write(data), noop) }),
  },
  "terminal: a pty has the requested size and can be resized": {
    what: "resizing does nothing",
    process: () => ({ resize: noop }),
  },
  "terminal: without a pty there is no terminal, and resizing is invalid": {
    what: "everything has a terminal",
    spawn: (options) => ({ ...options, pty: { cols: 80, rows: 24 } }),
  },
  "terminal: Ctrl-C interrupts": {
    what: "control characters are filtered",
    process: (good) => ({ write: (data) => good.write(Buffer.from(Buffer.from(data).toString().replaceAll("\x03", " "))) }),
  },
  "ending: a signal reaches the whole tree": {
    what: "signals go to the leader",
    process: (good) => ({ signal: (name) => good.signal(name, { scope: "leader" }) }),
  },
  "ending: a signal to the leader leaves the rest alone": {
    what: "signals go to the tree",
    process: (good) => ({ signal: (name) => good.signal(name, { scope: "tree" }) }),
  },
  "ending: an unknown signal is invalid, but a signal after the end is not": {
    what: "an unknown signal is ignored",
    process: (good) => ({ signal: (name, options) => forgiving("invalid", () => good.signal(name, options), noop) }),
  },
  "ending: a timeout kills the whole tree, including new sessions and orphans": {
    what: "a timeout kills only the leader",
    ...ownTimeout("SIGKILL", "leader"),
  },
  "ending: a process that ignores SIGTERM does not outlive its timeout": {
    what: "a timeout sends SIGTERM",
    ...ownTimeout("SIGTERM", "tree"),
  },
  "ending: kill resolves when every process of the tree has ended": {
    what: "kill only ends the leader",
    process: (good) => ({ kill: () => good.signal("SIGKILL", { scope: "leader" }) }),
  },
  "ending: processes that the leader left behind run until their ref is killed": {
    what: "processes left behind cannot be killed",
    process: () => ({ kill: noop }),
  },
  "ending: the output limit delivers exactly that many bytes, then kills": {
    what: "one byte too many is delivered",
    spawn: (options) => (options.outputBytesMax === undefined ? options : { ...options, outputBytesMax: options.outputBytesMax + 1 }),
  },
  "ending: output of exactly the limit is allowed": {
    what: "the limit itself counts as exceeded",
    spawn: (options) => (options.outputBytesMax === undefined ? options : { ...options, outputBytesMax: options.outputBytesMax - 1 }),
  },
  "ending: the sandbox's wall-clock limit applies even to a longer timeout": {
    what: "the limit is forgotten",
    config: (config) => ({ ...config, limits: {} }),
  },
  "ending: the sandbox's output limit applies to every command": {
    what: "the limit is forgotten",
    config: (config) => ({ ...config, limits: {} }),
  },
  "attach: the same ref starts one process": { what: "refs are ignored", spawn: without("ref") },
  "attach: starting the ref of an ended process returns its outcome": { what: "refs are ignored", spawn: without("ref") },
  "attach: after detach the output continues at the requested offset": {
    what: "attaching starts at the beginning",
    sandbox: (good) => ({ attach: (ref) => good.attach(ref, { stdoutOffset: 0, stderrOffset: 0 }) }),
  },
  "attach: unread output is complete even after the process ended": {
    what: "unread output is discarded",
    process(good, options) {
      if (options !== null) return {};
      good.discardOutput();
      return { output: nothing() };
    },
  },
  "attach: a detached process continues": { what: "detaching kills", process: (good) => ({ detach: () => void good.kill() }) },
  "attach: another handle takes over exactly where the first one was": {
    what: "opening creates another sandbox",
    capabilities: (good) => ({ ...good, reattach: true }),
    runtime: (good) => ({ open: () => good.create(SandboxConfig.parse({})) }),
  },
  "attach: kept last output never blocks the process and reaches every client": {
    what: "output is kept until it is consumed",
    spawn: without("keepLastOutput"),
  },
  "attach: a listener to a process that keeps its last output loses nothing": {
    what: "the oldest output is dropped despite a listener",
    process: (good) => ({ output: only(good, ({ offset }) => offset > 0) }),
  },
  "attach: without follow, the handle gets the output so far and detaches": {
    what: "follow is always on",
    sandbox: (good) => ({ attach: (ref, options) => good.attach(ref, { ...options, follow: true }) }),
  },
  "attach: an unknown ref is not_found": {
    what: "an unknown ref gives the wrong error",
    sandbox: (good) => ({ attach: (ref, from) => forgiving("not_found", () => good.attach(ref, from), notWhatItIs) }),
  },
  "attach: a forgotten ref is gone permanently": { what: "forgetting does nothing", sandbox: () => ({ forget: noop }) },
  "attach: a running process cannot be forgotten": {
    what: "forgetting always succeeds",
    sandbox: (good) => ({ forget: (ref) => forgiving("busy", () => good.forget(ref), noop) }),
  },
};
