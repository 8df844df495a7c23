import type { Ended } from "../../../contract/outcome.ts";
import { SandboxSpec } from "../../../contract/sandbox.ts";
import type { OutputChunk, Process, SpawnOptions } from "../../../sandbox/sandbox.ts";
import { type Defect, forgiving, noop, nothing, notWhatItIs } from "./broken-runtime.ts";

async function* mapped(process: Process, change: (chunk: OutputChunk) => OutputChunk): AsyncGenerator<OutputChunk> {
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
  (asked: SpawnOptions): SpawnOptions =>
    Object.fromEntries(Object.entries(asked).filter(([name]) => !names.includes(name as keyof SpawnOptions))) as unknown as SpawnOptions;

/** Ends a process by one signal to its leader alone, after its timeout, and calls it a timeout. */
function ownTimeout(signal: NodeJS.Signals, scope: "tree" | "leader") {
  return {
    spawn: without("timeoutMs"),
    process(good: Process, asked: SpawnOptions | null): Partial<Process> {
      if (asked?.timeoutMs === undefined) return {};
      setTimeout(() => good.signal(signal, { scope }).catch(() => undefined), asked.timeoutMs);
      return { ended: good.ended.then((ended) => ({ ...ended, kind: "timedOut" }) as Ended) };
    },
  };
}

let calls = 0;

/** Defects of processes: one for each test that begins with process, stdin, terminal, ending or attach. */
export const processDefects: Record<string, Defect> = {
  "process: stdout and stderr are kept apart": {
    what: "everything arrives as stdout",
    process: (good) => ({ output: mapped(good, (chunk) => ({ ...chunk, stream: "stdout" })) }),
  },
  "process: output is byte-exact, binary too, on both streams at once": {
    what: "output is taken for text",
    process: (good) => ({ output: mapped(good, (chunk) => ({ ...chunk, data: Buffer.from(Buffer.from(chunk.data).toString()) })) }),
  },
  "process: an exit code comes back as it is": {
    what: "exit codes are cut to seven bits",
    process: outcome((ended) => (ended.kind === "exited" ? { exitCode: ended.exitCode & 0x7f } : {})),
  },
  "process: an end by signal says which": {
    what: "a signal becomes an exit code",
    process: outcome((ended) => (ended.kind === "signaled" ? { kind: "exited", exitCode: 137 } : {})),
  },
  "process: arguments arrive unchanged": {
    what: "white space in arguments is folded",
    spawn: (asked) => ({ ...asked, argv: asked.argv.map((each) => each.replace(/\s+/g, " ")) }),
  },
  "process: a missing program is not_found": {
    what: "a missing program is some error",
    sandbox: (good) => ({ spawn: (asked) => forgiving("not_found", () => good.spawn(asked), notWhatItIs) }),
  },
  "process: a file that may not be executed is denied": {
    what: "a file that cannot be executed is some error",
    sandbox: (good) => ({ spawn: (asked) => forgiving("denied", () => good.spawn(asked), notWhatItIs) }),
  },
  "process: a missing cwd is not_found": { what: "the cwd is ignored", spawn: without("cwd") },
  "process: the cwd is the one asked for, /workspace by default": { what: "the cwd is ignored", spawn: without("cwd") },
  "process: environment has the sandbox's variables, the command's own win, nothing of the host's comes in": {
    what: "the sandbox's variables are forgotten",
    spec: (asked) => ({ ...asked, env: {} }),
  },
  "process: PATH, HOME, USER and LANG have defaults": {
    what: "HOME is empty",
    spawn: (asked) => ({ ...asked, env: { ...asked.env, HOME: "" } }),
  },
  "process: the default user is not root": {
    what: "commands are root",
    capabilities: (good) => ({ ...good, isolation: 1 }),
    process: (good) => ({ output: mapped(good, (chunk) => ({ ...chunk, data: Buffer.from("0\n") })) }),
  },
  "process: root is denied unless the spec allows it": {
    what: "the user asked for is ignored",
    capabilities: (good) => ({ ...good, isolation: 1 }),
    spawn: without("user"),
  },
  "process: root works where the spec allows it": {
    what: "the user asked for is ignored",
    capabilities: (good) => ({ ...good, rootUser: true }),
    spec: (asked) => ({ ...asked, allowRoot: false }),
    spawn: without("user"),
  },
  "process: allowRoot is refused where root cannot be had": {
    what: "root is promised and not given",
    capabilities: (good) => ({ ...good, rootUser: false }),
    spec: (asked) => ({ ...asked, allowRoot: false }),
  },
  "process: a hundred at once, each with its own output": {
    what: "one process of many loses its output",
    process(good) {
      calls += 1;
      if (calls % 50 !== 0) return {};
      good.discardOutput();
      return { output: nothing() };
    },
  },
  "process: ended waits for nobody who discards the output": { what: "discarding does nothing", process: () => ({ discardOutput() {} }) },
  "process: a slow consumer slows it down and loses nothing": {
    what: "output is taken in without being asked for",
    process(good) {
      const chunks: OutputChunk[] = [];
      const taken = (async () => {
        for await (const chunk of good.output) chunks.push(chunk);
      })();
      const output = (async function* () {
        await taken;
        yield* chunks;
      })();
      return { output };
    },
  },
  "process: the list shows it while it runs, with its ref and pid": {
    what: "the list is empty",
    sandbox: () => ({ processes: async () => [] }),
  },
  "process: a file written by a command is read back through the files": {
    what: "files are read from somewhere else",
    sandbox: () => ({ readFile: async () => nothing() }),
  },
  "stdin: closed gives end-of-file at once": { what: "stdin is never closed", spawn: (asked) => ({ ...asked, stdin: "pipe" }) },
  "stdin: closed is the default, and writing to it is invalid": { what: "writing goes nowhere", process: () => ({ write: noop }) },
  "stdin: a pipe carries what is written until it is closed": { what: "closing does nothing", process: () => ({ closeStdin: noop }) },
  "stdin: the reply to a line comes before the next is written": {
    what: "output comes at the end only",
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
    what: "the last byte of a big write is lost",
    process: (good) => ({ write: (data) => good.write(data.length > 100_000 ? data.subarray(0, -1) : data) }),
  },
  "stdin: a write waits for a process that does not read": {
    what: "writes are queued without bound",
    process: (good) => ({
      async write(data) {
        good.write(data).catch(() => undefined);
      },
    }),
  },
  "stdin: writing after the end is gone": {
    what: "writing to the dead is no error",
    process: (good) => ({ write: (data) => forgiving("gone", () => good.write(data), noop) }),
  },
  "terminal: a pty is a terminal of the size asked for, and is resized": {
    what: "resizing does nothing",
    process: () => ({ resize: noop }),
  },
  "terminal: without a pty there is none, and resizing is invalid": {
    what: "everything has a terminal",
    spawn: (asked) => ({ ...asked, pty: { cols: 80, rows: 24 } }),
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
  "ending: an unknown signal is invalid; a signal after the end is no error": {
    what: "an unknown signal is ignored",
    process: (good) => ({ signal: (name, options) => forgiving("invalid", () => good.signal(name, options), noop) }),
  },
  "ending: a timeout kills the whole tree, own sessions and orphans included": {
    what: "a timeout kills the leader only",
    ...ownTimeout("SIGKILL", "leader"),
  },
  "ending: a process that ignores SIGTERM does not outlive its timeout": {
    what: "a timeout asks politely",
    ...ownTimeout("SIGTERM", "tree"),
  },
  "ending: kill resolves when no process of the tree lives": {
    what: "kill means the leader",
    process: (good) => ({ kill: () => good.signal("SIGKILL", { scope: "leader" }) }),
  },
  "ending: what the leader left behind lives on and is killed with its ref": {
    what: "what is left behind cannot be killed",
    process: () => ({ kill: noop }),
  },
  "ending: the output limit delivers exactly that many bytes and says why it ended": {
    what: "one byte too many is delivered",
    spawn: (asked) => (asked.outputBytesMax === undefined ? asked : { ...asked, outputBytesMax: asked.outputBytesMax + 1 }),
  },
  "ending: output of exactly the limit is no offence": {
    what: "the limit itself counts as exceeded",
    spawn: (asked) => (asked.outputBytesMax === undefined ? asked : { ...asked, outputBytesMax: asked.outputBytesMax - 1 }),
  },
  "ending: the sandbox's wall clock limits a command that has no timeout of its own, and one that asks for more": {
    what: "the limit is forgotten",
    spec: (asked) => ({ ...asked, limits: {} }),
  },
  "ending: the sandbox's output limit holds for every command": {
    what: "the limit is forgotten",
    spec: (asked) => ({ ...asked, limits: {} }),
  },
  "attach: the same ref starts one process": { what: "refs are ignored", spawn: without("ref") },
  "attach: starting the ref of an ended process gives its outcome, not a second run": { what: "refs are ignored", spawn: without("ref") },
  "attach: after detach the output goes on at the offset asked for": {
    what: "attaching starts at the beginning",
    sandbox: (good) => ({ attach: (ref) => good.attach(ref, { stdoutOffset: 0, stderrOffset: 0 }) }),
  },
  "attach: what was never consumed is there in full, though the process ended meanwhile": {
    what: "what nobody read in time is thrown away",
    process(good, asked) {
      if (asked !== null) return {};
      good.discardOutput();
      return { output: nothing() };
    },
  },
  "attach: a detached process goes on": { what: "detaching kills", process: (good) => ({ detach: () => void good.kill() }) },
  "attach: another handle takes over, exactly where the first was": {
    what: "opening makes another sandbox",
    capabilities: (good) => ({ ...good, reattach: true }),
    runtime: (good) => ({ open: () => good.create(SandboxSpec.parse({})) }),
  },
  "attach: a process that keeps its last output waits for nobody, and gives it to each who comes": {
    what: "output is kept until it is taken",
    spawn: without("keepLastOutput"),
  },
  "attach: who listens to a process that keeps its last output slows it down and loses nothing": {
    what: "the oldest output makes room though somebody listens",
    process: (good) => ({ output: only(good, ({ offset }) => offset > 0) }),
  },
  "attach: who does not follow gets what is there, and lets go": {
    what: "everybody follows",
    sandbox: (good) => ({ attach: (ref, asked) => good.attach(ref, { ...asked, follow: true }) }),
  },
  "attach: an unknown ref is not_found": {
    what: "an unknown ref is some error",
    sandbox: (good) => ({ attach: (ref, from) => forgiving("not_found", () => good.attach(ref, from), notWhatItIs) }),
  },
  "attach: a forgotten ref is gone for ever": { what: "forgetting does nothing", sandbox: () => ({ forget: noop }) },
  "attach: a running process is not forgotten": {
    what: "forgetting always succeeds",
    sandbox: (good) => ({ forget: (ref) => forgiving("busy", () => good.forget(ref), noop) }),
  },
};
