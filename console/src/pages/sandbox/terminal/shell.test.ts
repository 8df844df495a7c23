import { expect, test } from "vitest";
import type { RemoteProcess } from "../../../../../src/client/process-stream.ts";
import { CaissonError } from "../../../../../src/contract/error.ts";
import { openShell, type ShellState } from "./shell.ts";

type Frame = { stream: "stdout"; offset: number; data: Uint8Array };
const frame = (offset: number, text: string): Frame => ({ stream: "stdout", offset, data: new TextEncoder().encode(text) });
const ended = { kind: "exited", exitCode: 0, durationMs: 1, stdoutBytes: 0, stderrBytes: 0, memoryKills: 0 } as const;
const away = () => new CaissonError("unavailable", "the station is away");

/** A process that says these frames, then breaks off or ends. */
function said(frames: readonly Frame[], fails?: CaissonError): RemoteProcess {
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

/** Opens a shell whose connections are these, one after the other, until it has come to an end. */
async function heard(connections: readonly (RemoteProcess | CaissonError)[], { isNew }: { isNew: boolean }) {
  const waiting = [...connections];
  const asked: object[] = [];
  const pieces: { text: string; isPast: boolean }[] = [];
  const states: ShellState["kind"][] = [];
  const next = async (how: object) => {
    asked.push(how);
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
  return { asked, states, text: pieces.map(({ text }) => text).join(""), pieces };
}

test("a connection that breaks off is made again where the output was, until the shell ends", async () => {
  const { asked, states, text } = await heard([said([frame(0, "one ")], away()), away(), said([frame(4, "two")])], { isNew: true });
  expect(text).toBe("one two");
  expect(asked).toEqual([{ started: "r" }, { ref: "r", stdoutOffset: 4 }, { ref: "r", stdoutOffset: 4 }]);
  expect(states).toEqual(["opening", "open", "away", "away", "open", "ended"]);
});

test("what overlaps is told once", async () => {
  const { text } = await heard([said([frame(0, "abcdef")], away()), said([frame(2, "cd"), frame(4, "efgh")])], { isNew: true });
  expect(text).toBe("abcdefgh");
});

test("one that runs already is told from what is kept, as past, and goes on from there", async () => {
  const { asked, pieces } = await heard([said([frame(100, "old ")]), said([frame(104, "new")])], { isNew: false });
  expect(pieces).toEqual([
    { text: "old ", isPast: true },
    { text: "new", isPast: false },
  ]);
  expect(asked).toEqual([
    { ref: "r", follow: false },
    { ref: "r", stdoutOffset: 104 },
  ]);
});

test("what is not kept any more is passed over", async () => {
  const gone = new CaissonError("gone", "not kept any more");
  const { text, states } = await heard([said([frame(0, "a")], away()), gone, said([frame(500, "z")])], { isNew: true });
  expect(text).toBe("az");
  expect(states.at(-1)).toBe("ended");
});

test("what is typed before there is a connection is not lost", async () => {
  const opening = Promise.withResolvers<RemoteProcess>();
  const written = Promise.withResolvers<string>();
  const shell = openShell(
    { openProcess: () => opening.promise, attachProcess: () => opening.promise },
    { sandbox: "sb", ref: "r", isNew: true, size: { cols: 80, rows: 24 }, onOutput() {}, onState() {} },
  );
  shell.write(new TextEncoder().encode("ls"));
  opening.resolve({ ...said([]), write: async (data) => written.resolve(new TextDecoder().decode(data)) });
  expect(await written.promise).toBe("ls");
});

test("one that is shown elsewhere, or cannot be had, is left alone", async () => {
  const superseded = new CaissonError("superseded", "another reader");
  expect((await heard([said([], superseded)], { isNew: true })).states).toEqual(["opening", "open", "taken"]);
  expect((await heard([new CaissonError("not_found", "no such process")], { isNew: false })).states).toEqual(["opening", "failed"]);
});
