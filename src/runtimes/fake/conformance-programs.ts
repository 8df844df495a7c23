import { constants } from "node:os";
import type { Duplex } from "node:stream";
import { ignore, ignoring } from "../../lib/failures.ts";
import { type Program, type ProgramIo, pathOf } from "./program.ts";

/** Returns an argument of `sh -c script name …`, counted from 0 after the name. */
const argument = (io: ProgramIo, index: number) => io.argv[4 + index] ?? "";
const forEver = 60_000_000;

async function copy(io: ProgramIo): Promise<number> {
  for (let data = await io.read(); data !== null; data = await io.read()) await io.stdout(data);
  return 0;
}
async function copyTo(io: ProgramIo, connection: Duplex): Promise<void> {
  for (let data = await io.read(); data !== null; data = await io.read()) connection.write(Buffer.from(data));
  connection.end();
}
async function zeros(io: ProgramIo, bytes: number): Promise<void> {
  const block = Buffer.alloc(65_536);
  for (let left = bytes; left > 0; left -= block.length) await io.stdout(left < block.length ? block.subarray(0, left) : block);
}
const sleeper = (io: ProgramIo) => io.start(["sleep", argument(io, 0)]);
const show = (io: ProgramIo) => io.files.read(pathOf(io, argument(io, 0)), io.uid);

/** The conformance suite's scripts as in-memory programs, keyed by the name that the suite passes as `$0`. */
export const conformancePrograms: Readonly<Record<string, Program>> = Object.fromEntries(
  Object.entries<Program>({
    print: async (io) => {
      await io.stdout(argument(io, 0));
      await io.stderr(argument(io, 1));
      return 0;
    },
    exit: (io) => Number(argument(io, 0)),
    "signal-self": async (io) => {
      io.signal(constants.signals[`SIG${argument(io, 0)}` as NodeJS.Signals]);
      await io.sleep(60_000);
      return 0;
    },
    variable: (io) => io.run(["printenv", argument(io, 0)], io),
    environment: (io) => io.run(["env"], io),
    folder: (io) => io.run(["pwd"], io),
    user: (io) => io.run(["id"], io),
    show: async (io) => {
      await io.stdout(show(io));
      return 0;
    },
    "show-both": async (io) => {
      await Promise.all([io.stdout(show(io)), io.stderr(show(io))]);
      return 0;
    },
    copy,
    sleep: (io) => io.run(["sleep", argument(io, 0)], io),
    "mark-and-copy": async (io) => {
      io.files.write(pathOf(io, argument(io, 0)), Buffer.from("started\n"), { how: "append", uid: io.uid });
      await io.stdout("ready\n");
      return copy(io);
    },
    "print-then-copy": async (io) => {
      await io.stdout(argument(io, 0));
      return copy(io);
    },
    "count-late": async (io) => {
      await io.stdout("ready\n");
      while (!io.files.exists(pathOf(io, argument(io, 0)))) await io.sleep(50);
      let bytes = 0;
      for (let data = await io.read(); data !== null; data = await io.read()) bytes += data.length;
      await io.stdout(`${bytes}\n`);
      return 0;
    },
    family: async (io) => {
      sleeper(io);
      sleeper(io);
      await io.stdout("ready\n");
      await io.sleep(forEver);
      return 0;
    },
    abandon: async (io) => {
      sleeper(io);
      await io.stdout("ready\n");
      return 0;
    },
    "exit-on-term": async (io) => {
      io.onSignal("SIGTERM", () => {
        ignoring("the program unwinds in its sleep", () => io.exit(7));
      });
      sleeper(io);
      await io.stdout("ready\n");
      await io.sleep(forEver);
      return 0;
    },
    "ignore-term": async (io) => {
      io.onSignal("SIGTERM", () => {});
      await io.stdout("ready\n");
      await io.sleep(forEver);
      return 0;
    },
    blocks: async (io) => {
      for (let block = 1; block <= Number(argument(io, 0)); block += 1) {
        await zeros(io, 65_536);
        io.files.write(pathOf(io, argument(io, 1)), Buffer.from(`${block}\n`), { uid: io.uid });
      }
      return 0;
    },
    zeros: async (io) => {
      await zeros(io, Number(argument(io, 0)));
      return 0;
    },
    terminal: async (io) => {
      const size = () => `${io.terminal?.rows} ${io.terminal?.cols}\n`;
      await io.stdout(`${io.terminal === null ? "plain" : "terminal"}\n${size()}`);
      await io.read();
      await io.stdout(size());
      return 0;
    },
    "is-terminal": async (io) => {
      await io.stdout(io.terminal === null ? "plain\n" : "terminal\n");
      return 0;
    },
    "ready-and-sleep": async (io) => {
      await io.stdout("ready\n");
      await io.sleep(Number(argument(io, 0)) * 1000);
      return 0;
    },
    ticks: async (io) => {
      while (true) {
        await io.stdout("tick\n");
        await io.sleep(20);
      }
    },
    link: (io) => {
      io.files.link(argument(io, 0), pathOf(io, argument(io, 1)), io.uid);
      return 0;
    },
    fifo: (io) => {
      io.files.fifo(pathOf(io, argument(io, 0)), io.uid);
      return 0;
    },
    serve: async (io) => {
      await io.stdout(`${io.listen(echoAtTheEnd)}\n`);
      await io.sleep(forEver);
      return 0;
    },
    dial: async (io) => {
      const connection = io.connect(Number(argument(io, 0)));
      if (connection === null) return 4;
      const sending = copyTo(io, connection);
      void ignore(sending, "awaited below; the process may end while it sends");
      for await (const piece of connection) await io.stdout(piece as Buffer);
      await sending;
      return 0;
    },
    burn: async (io) => {
      await io.sleep(forEver);
      return 0;
    },
    "write-file": (io) => {
      io.files.write(pathOf(io, argument(io, 0)), Buffer.alloc(Number(argument(io, 1))), { uid: io.uid });
      return 0;
    },
  }).map(([name, program]) => [`caisson:${name}`, program]),
);

function echoAtTheEnd(connection: Duplex): void {
  const pieces: Buffer[] = [];
  connection.on("data", (piece: Buffer) => pieces.push(piece));
  connection.on("end", () => connection.end(Buffer.concat(pieces)));
  connection.on("error", () => {});
}
