import { CaissonError } from "../../contract/error/error.ts";
import type { ForwardView } from "../../contract/network/network-verbs.ts";
import { defined } from "../../lib/defined.ts";
import { ignore } from "../../lib/failures.ts";
import type { OpenedPort } from "../../verbs/networks.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { line } from "../terminal/line.ts";
import { exitCodeOf } from "../terminal/signals.ts";
import { table } from "../terminal/table.ts";

type Forward = OpenedPort<ForwardView>;

/** The minimum time between reports of failed connections to the same port. */
const COMPLAINT_MS = 5_000;
const PORT_MAX = 65_535;

/** `caisson open RUN|SANDBOX PORT` */
export async function open(context: CliContext, args: ParsedArguments): Promise<number> {
  const [name = "", portText = ""] = args.positionals;
  const port = portFrom("PORT", portText);
  const listen = args.option("listen");
  const listenPort = listen === undefined ? undefined : portFrom("--listen", listen);
  const json = args.flag("json");
  const { networks } = context.station;
  await using preview = await networks.preview(name, { port, ...defined({ listenPort }) });
  const { sandbox, url } = preview.view;
  let isOpen = (await networks.ports(sandbox)).some((each) => each.port === port);
  await (json ? context.stdout.printJson({ ...preview.view, listening: isOpen }) : context.stdout.print(line`${url}`));
  if (!isOpen && !json) await context.stderr.print(line`caisson: nothing is listening on port ${port} yet`);
  const tellChanges = async () => {
    for await (const event of networks.watchPorts(sandbox, context.interruption)) {
      const opened = event.type === "port.opened";
      if (event.data.port !== port || opened === isOpen) continue;
      isOpen = opened;
      await (json
        ? context.stdout.printJson(event)
        : context.stderr.print(line`caisson: port ${port} ${opened ? "listens now" : "no longer listens"}`));
    }
  };
  void ignore(tellChanges(), "the preview works without the watch");
  return await untilOver(context, preview);
}

/** `caisson forward RUN|SANDBOX PORT[:LOCAL]…` */
export async function forward(context: CliContext, args: ParsedArguments): Promise<number> {
  const [name = "", ...words] = args.positionals;
  const wanted = words.map(forwardFrom);
  const listenHost = args.option("listen-host") ?? "127.0.0.1";
  const complain = complainer(context);
  const forwards: Forward[] = [];
  try {
    for (const { port, local } of wanted) {
      const onRefused = (error: unknown) => complain(port, error);
      const make = (listenPort?: number) =>
        context.station.networks.forward(name, { port, listenHost, ...defined({ listenPort }) }, { onRefused });
      const openedPort = await (local === null ? make(port).catch(orAnyPort(() => make())) : make(local));
      forwards.push(openedPort);
      await (args.flag("json")
        ? context.stdout.printJson(openedPort.view)
        : context.stdout.print(line`${listenHost}:${openedPort.view.listenPort} forwards to port ${port} of ${openedPort.view.sandbox}`));
    }
    return await untilOver(context, forwards[0] as Forward);
  } finally {
    await Promise.all(forwards.map((each) => each.close()));
  }
}

/** `caisson ports RUN|SANDBOX` */
export async function ports(context: CliContext, args: ParsedArguments): Promise<number> {
  const name = args.positionals[0] as string;
  const { station, stdout } = context;
  const json = args.flag("json");
  if (!args.flag("watch")) {
    const listening = await station.networks.ports(name);
    if (json) await stdout.printJson(listening);
    else if (listening.length === 0) await context.stderr.print(line`caisson: nothing is listening`);
    else await stdout.print(table([["PORT", "ADDRESS"], ...listening.map(({ port, address }) => [String(port), address])]));
    return 0;
  }
  const over = new AbortController();
  const signal = AbortSignal.any([context.interruption.signal, over.signal]);
  const watch = async () => {
    for await (const event of station.networks.watchPorts(name, { signal })) {
      if (json) void stdout.printJson(event);
      else
        void stdout.print(event.type === "port.closed" ? line`- ${event.data.port}` : line`+ ${event.data.port} on ${event.data.address}`);
    }
  };
  await Promise.race([watch(), stdout.broken]);
  over.abort();
  const received = context.interruption.received();
  return received === null ? 0 : exitCodeOf(received);
}

/** Serves until a signal arrives or the sandbox is removed, which is not a failure. */
async function untilOver(context: CliContext, { view, closed }: OpenedPort<{ sandbox: string }>): Promise<number> {
  const signal = await Promise.race([context.interruption.first, closed.then(() => null)]);
  if (signal !== null) return exitCodeOf(signal);
  await context.stderr.print(line`caisson: the sandbox ${view.sandbox} no longer exists`);
  return 0;
}

function complainer(context: CliContext): (port: number, error: unknown) => void {
  const last = new Map<number, number>();
  return (port, error) => {
    const now = performance.now();
    if (now - (last.get(port) ?? Number.NEGATIVE_INFINITY) < COMPLAINT_MS) return;
    last.set(port, now);
    const why =
      error instanceof CaissonError && error.code === "unavailable" ? "nothing is listening there" : String((error as Error).message);
    void context.stderr.print(line`caisson: port ${port}: ${why}`);
  };
}

/** Falls back to any free port: the same number outside is only a convenience. */
function orAnyPort(make: () => Promise<Forward>): (error: unknown) => Promise<Forward> {
  return (error) => {
    if (error instanceof CaissonError && (error.code === "conflict" || error.code === "denied")) return make();
    throw error;
  };
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
  throw new CaissonError("invalid", `${what} ${JSON.stringify(text)} is not a port`, { hint: `Use a number from 1 to ${PORT_MAX}.` });
}
