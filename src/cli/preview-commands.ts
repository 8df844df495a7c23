import { CaissonError } from "../contract/error.ts";
import { type NetworkEvent, PortClosed, PortOpened } from "../contract/network-event.ts";
import { createForward, type Forward } from "../network/preview/forward.ts";
import { createPreview } from "../network/preview/preview.ts";
import { onePerPort, type WatchEnd, watchPorts } from "../network/preview/watch-ports.ts";
import type { OwnedSandbox } from "../sandbox/sandbox.ts";
import type { ParsedArguments } from "./command.ts";
import type { CliContext } from "./context.ts";
import { line } from "./line.ts";
import { openSandbox, sandboxNamed } from "./net-target.ts";
import { exitCodeOf } from "./signals.ts";
import { table } from "./table.ts";

/** How often a person is told that connections to the same port come to nothing. */
const COMPLAINT_MS = 5_000;
const PORT_MAX = 65_535;

/** `caisson open RUN|SANDBOX PORT` */
export async function open(context: CliContext, given: ParsedArguments): Promise<number> {
  const [name = "", portText = ""] = given.positionals;
  const port = portFrom("PORT", portText);
  const listen = given.option("listen");
  const listenPort = listen === undefined ? 0 : portFrom("--listen", listen);
  const sandbox = await openSandbox(context, await sandboxNamed(context, name));
  const listeners = () => sandbox.listeners();
  const preview = await createPreview({ connect: (inside) => sandbox.connect(inside), listeners, port, listenPort });
  try {
    let isOpen = onePerPort(await listeners()).has(port);
    const { url, plainUrl, token } = preview;
    const facts = { sandbox: sandbox.id, port, url, plainUrl, token, listenPort: preview.listenPort, listening: isOpen };
    await (given.flag("json") ? context.stdout.printJson(facts) : context.stdout.print(line`${url}`));
    const say = (event: NetworkEvent, words: string) =>
      given.flag("json") ? context.stdout.printJson(event) : context.stderr.print(line`caisson: ${words}`);
    if (!isOpen && !given.flag("json")) await context.stderr.print(line`caisson: nothing listens on port ${port} yet`);
    const change = (now: { port: number; address?: string }) => {
      const opened = now.address !== undefined;
      if (now.port !== port || opened === isOpen) return;
      isOpen = opened;
      void say(portEvent(sandbox.id, now), `port ${port} ${opened ? "listens now" : "no longer listens"}`);
    };
    // When it cannot look any more, the preview itself may still be of use.
    void watchPorts({ listeners, onOpened: change, onClosed: change, signal: context.interruption.signal });
    return await untilOver(context, sandbox);
  } finally {
    await preview.revoke();
  }
}

/** `caisson forward RUN|SANDBOX PORT[:LOCAL]…` */
export async function forward(context: CliContext, given: ParsedArguments): Promise<number> {
  const [name = "", ...words] = given.positionals;
  const wanted = words.map(forwardFrom);
  const listenHost = given.option("listen-host") ?? "127.0.0.1";
  const sandbox = await openSandbox(context, await sandboxNamed(context, name));
  const forwards: Forward[] = [];
  const complain = complainer(context);
  try {
    for (const { port, local } of wanted) {
      const make = (listenPort: number) =>
        createForward({
          connect: (inside) => sandbox.connect(inside),
          port,
          listenPort,
          listenHost,
          onRefused: (error) => complain(port, error),
        });
      const made = await (local === null ? make(port).catch(orAnyPort(() => make(0))) : make(local));
      forwards.push(made);
      const facts = { sandbox: sandbox.id, port, listenHost, listenPort: made.listenPort };
      await (given.flag("json")
        ? context.stdout.printJson(facts)
        : context.stdout.print(line`${listenHost}:${made.listenPort} is port ${port} of ${sandbox.id}`));
    }
    return await untilOver(context, sandbox);
  } finally {
    await Promise.all(forwards.map((each) => each.close()));
  }
}

/** `caisson ports RUN|SANDBOX` */
export async function ports(context: CliContext, given: ParsedArguments): Promise<number> {
  const sandbox = await openSandbox(context, await sandboxNamed(context, given.positionals[0] as string));
  const json = given.flag("json");
  if (!given.flag("watch")) {
    const listening = [...onePerPort(await sandbox.listeners()).values()];
    if (json) await context.stdout.printJson(listening);
    else if (listening.length === 0) await context.stderr.print(line`caisson: nothing listens`);
    else await context.stdout.print(table([["PORT", "ADDRESS"], ...listening.map(({ port, address }) => [String(port), address])]));
    return 0;
  }
  const show = (now: { port: number; address?: string }) => {
    if (json) void context.stdout.printJson(portEvent(sandbox.id, now));
    else void context.stdout.print(now.address === undefined ? line`- ${now.port}` : line`+ ${now.port} on ${now.address}`);
  };
  const watching = watchPorts({
    listeners: () => sandbox.listeners(),
    onOpened: show,
    onClosed: show,
    signal: context.interruption.signal,
  });
  const first = await Promise.race([watching, sandbox.closed.then(() => null), context.stdout.broken.then(() => null)]);
  return endOfWatch(context, first);
}

function endOfWatch(context: CliContext, end: WatchEnd | null): number {
  if (end?.why === "failed" && !(end.error instanceof CaissonError && end.error.code === "lost")) throw end.error;
  const received = context.interruption.received();
  return received === null ? 0 : exitCodeOf(received);
}

/** Serves until somebody ends it or the sandbox is gone, which is no failure. */
async function untilOver(context: CliContext, sandbox: OwnedSandbox): Promise<number> {
  const gone = sandbox.closed.then(() => null);
  const signal = await Promise.race([context.interruption.first, gone]);
  if (signal !== null) return exitCodeOf(signal);
  await context.stderr.print(line`caisson: the sandbox ${sandbox.id} is gone`);
  return 0;
}

function complainer(context: CliContext): (port: number, error: unknown) => void {
  const last = new Map<number, number>();
  return (port, error) => {
    const now = performance.now();
    if (now - (last.get(port) ?? Number.NEGATIVE_INFINITY) < COMPLAINT_MS) return;
    last.set(port, now);
    const why = error instanceof CaissonError && error.code === "unavailable" ? "nothing listens there" : String((error as Error).message);
    void context.stderr.print(line`caisson: port ${port}: ${why}`);
  };
}

/** The same number outside is a courtesy: another one is better than none. */
function orAnyPort(make: () => Promise<Forward>): (error: unknown) => Promise<Forward> {
  return (error) => {
    if (error instanceof CaissonError && (error.code === "conflict" || error.code === "denied")) return make();
    throw error;
  };
}

function portEvent(sandbox: string, { port, address }: { port: number; address?: string }): NetworkEvent {
  return address === undefined ? PortClosed.make({ sandbox, port }) : PortOpened.make({ sandbox, port, address });
}

function forwardFrom(text: string): { port: number; local: number | null } {
  const [port = "", local, ...more] = text.split(":");
  if (more.length > 0) refusePort("PORT[:LOCAL]", text);
  return { port: portFrom("PORT", port), local: local === undefined ? null : portFrom("LOCAL", local) };
}

function portFrom(what: string, text: string): number {
  const port = /^[0-9]{1,5}$/.test(text) ? Number(text) : 0;
  return port >= 1 && port <= PORT_MAX ? port : refusePort(what, text);
}

function refusePort(what: string, text: string): never {
  throw new CaissonError("invalid", `${what} ${JSON.stringify(text)} is not a port`, { hint: `A port is a number from 1 to ${PORT_MAX}.` });
}
