import { expect, test } from "vitest";
import type { RemoteProcess } from "../../../../../src/client/process-stream.ts";
import { CaissonError } from "../../../../../src/contract/error/error.ts";
import { openShell, type ShellState } from "./shell.ts";

type Frame = { stream: "stdout"; offset: number; data: Uint8Array };
const frame = (offset: number, text: string): Frame => ({ stream: "stdout", offset, data: new TextEncoder().encode(text) });
const ended = { kind: "exited", exitCode: 0, durationMs: 1, stdoutBytes: 0, stderrBytes: 0, memoryKills: 0 } as const;
const away = () => new CaissonError("unavailable", "the station is away");

/** Returns a process that outputs these frames, then fails or ends. */
function createProcess(frames: readonly Frame[], fails?: CaissonError): RemoteProcess {
  async function* output() {
    yield* frames;
    if (fails !== undefined) throw fails;
  }
  const nothing = async () => {};
  return {
    ref: "r",
    pid: 1,
    output: output(),
    ended: Promise.resolve(ended),
    discardOutput() {},
    write: nothing,
    closeStdin: nothing,
    resize: nothing,
    signal: nothing,
    kill: nothing,
    detach() {},
  };
}

/** Opens a shell over these connections, one after the other, and waits until it stops. */
async function runShell(connections: readonly (RemoteProcess | CaissonError)[], { isNew }: { isNew: boolean }) {
  const waiting = [...connections];
  const requests: object[] = [];
  const pieces: { text: string; isPast: boolean }[] = [];
  const states: ShellState["kind"][] = [];
  const next = async (how: object) => {
    requests.push(how);
    const connection = waiting.shift();
    if (connection === undefined) throw new CaissonError("internal", "one connection too many");
    if (connection instanceof CaissonError) throw connection;
    return connection;
  };
  const done = Promise.withResolvers<void>();
  openShell(
    {
      openProcess: (_sandbox, { ref }) => next({ started: ref }),
      attachProcess: (_sandbox, ref, attach) => next({ ref, ...attach }),
    },
    {
      sandbox: "sb",
      ref: "r",
      isNew,
      size: { cols: 80, rows: 24 },
      pause: async () => {},
      onOutput: (data, { isPast }) => pieces.push({ text: new TextDecoder().decode(data), isPast }),
      onState({ kind }) {
        states.push(kind);
        if (kind === "ended" || kind === "failed" || kind === "taken") done.resolve();
      },
    },
  );
  await done.promise;
  return { asked: requests, states, text: pieces.map(({ text }) => text).join(""), pieces };
}

test("reconnects at the last offset until the shell ends", async () => {
  const {
    asked: requests,
    states,
    text,
  } = await runShell([createProcess([frame(0, "one ")], away()), away(), createProcess([frame(4, "two")])], { isNew: true });
  expect(text).toBe("one two");
  expect(requests).toEqual([{ started: "r" }, { ref: "r", stdoutOffset: 4 }, { ref: "r", stdoutOffset: 4 }]);
  expect(states).toEqual(["opening", "open", "away", "away", "open", "ended"]);
});

test("shows overlapping output once", async () => {
  const { text } = await runShell([createProcess([frame(0, "abcdef")], away()), createProcess([frame(2, "cd"), frame(4, "efgh")])], {
    isNew: true,
  });
  expect(text).toBe("abcdefgh");
});

test("shows the stored output of a running shell as past, then continues", async () => {
  const { asked: requests, pieces } = await runShell([createProcess([frame(100, "old ")]), createProcess([frame(104, "new")])], {
    isNew: false,
  });
  expect(pieces).toEqual([
    { text: "old ", isPast: true },
    { text: "new", isPast: false },
  ]);
  expect(requests).toEqual([
    { ref: "r", follow: false },
    { ref: "r", stdoutOffset: 104 },
  ]);
});

test("skips output that is no longer stored", async () => {
  const goneError = new CaissonError("gone", "no longer kept");
  const { text, states } = await runShell([createProcess([frame(0, "a")], away()), goneError, createProcess([frame(500, "z")])], {
    isNew: true,
  });
  expect(text).toBe("az");
  expect(states.at(-1)).toBe("ended");
});

test("keeps input that is typed before the connection is open", async () => {
  const opening = Promise.withResolvers<RemoteProcess>();
  const written = Promise.withResolvers<string>();
  const shell = openShell(
    { openProcess: () => opening.promise, attachProcess: () => opening.promise },
    { sandbox: "sb", ref: "r", isNew: true, size: { cols: 80, rows: 24 }, onOutput() {}, onState() {} },
  );
  shell.write(new TextEncoder().encode("ls"));
  opening.resolve({ ...createProcess([]), write: async (data) => written.resolve(new TextDecoder().decode(data)) });
  expect(await written.promise).toBe("ls");
});

test("stops when the shell is shown elsewhere or does not exist", async () => {
  const superseded = new CaissonError("superseded", "another reader");
  expect((await runShell([createProcess([], superseded)], { isNew: true })).states).toEqual(["opening", "open", "taken"]);
  expect((await runShell([new CaissonError("not_found", "no such process")], { isNew: false })).states).toEqual(["opening", "failed"]);
});
