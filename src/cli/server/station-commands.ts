import { resolve } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { CaissonError } from "../../contract/error/error.ts";
import type { NewToken } from "../../contract/token/token-verbs.ts";
import { defined } from "../../lib/defined.ts";
import type { StationStatus } from "../../verbs/station-routes.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { parseDuration } from "../options/option-values.ts";
import type { ReachedStation, ServedStation, ServedWhere } from "../server-control.ts";
import { line } from "../terminal/line.ts";
import { exitCodeOf } from "../terminal/signals.ts";
import { table } from "../terminal/table.ts";
import { detachedLogOptions, logFrom } from "./log-options.ts";

const PORT_DEFAULT = 7433;
const PORT_MAX = 65_535;

/** `caisson up` */
export async function up(context: CliContext, args: ParsedArguments): Promise<number> {
  const where = whereFrom(context, args);
  if (args.flag("detach")) {
    const argv = ["up", "--no-token", ...optionsOf(where), ...readyOf(args), ...detachedLogOptions(context, args)];
    await tell(context, args, await context.server.startDetached(argv));
    return 0;
  }
  await using server = await context.server.start({ ...where, log: logFrom(context, args) });
  await tell(context, args, server);
  const stopRequest = await Promise.race([context.interruption.first, server.askedToEnd]);
  if (typeof stopRequest === "object" && stopRequest.drain) await waitUntilDrained(context, server, stopRequest.timeoutMs);
  const { atWork } = server.status.runs;
  await context.stderr.print(
    line`caisson: the station is stopping${atWork === 0 ? "" : `; ${runsText(atWork)} released; the next station continues`}`,
  );
  // A second signal means that the user does not want to wait; the next station can continue everything.
  void context.interruption.second.then((signal) => process.exit(exitCodeOf(signal)));
  await server.close();
  return 0;
}

/** Waits until the station drives no runs, the timeout passes, or a user or client insists on stopping. */
async function waitUntilDrained(context: CliContext, server: ServedStation, timeoutMs: number | undefined): Promise<void> {
  const over = new AbortController();
  const timeout = timeoutMs === undefined ? new Promise<never>(() => {}) : delay(timeoutMs, undefined, over);
  const { atWork } = server.status.runs;
  if (atWork > 0) await context.stderr.print(line`caisson: the station accepts no new work and waits for ${runsText(atWork)}`);
  try {
    await Promise.race([server.drained(), server.askedToEndAtOnce, timeout, context.interruption.first]);
  } finally {
    over.abort();
  }
}

const runsText = (runs: number) => `${runs} ${runs === 1 ? "run" : "runs"}`;

/** `caisson down` */
export async function down(context: CliContext, args: ParsedArguments): Promise<number> {
  const timeout = args.option("timeout");
  const drain = args.flag("drain");
  if (timeout !== undefined && !drain)
    throw new CaissonError("invalid", "--timeout requires --drain", { hint: "--timeout limits how long --drain waits. Add --drain." });
  const timeoutMs = timeout === undefined ? undefined : parseDuration("timeout", timeout);
  const reached = await context.server.reach();
  const onWait = (runs: number) => context.stderr.print(line`caisson: the station is waiting for ${runsText(runs)}`);
  await reached?.shutDown({ drain, onWait, ...defined({ timeoutMs }) });
  if (args.flag("json")) await context.stdout.printJson({ ended: reached?.status.pid ?? null });
  else if (reached === null) await context.stderr.print(line`caisson: no station is running`);
  else await context.stderr.print(line`caisson: station ${reached.status.pid} has stopped`);
  return 0;
}

/** `caisson status` */
export async function status(context: CliContext, args: ParsedArguments): Promise<number> {
  const { target } = context;
  const reached = target.kind === "elsewhere" ? null : await context.server.reach();
  const found = target.kind === "elsewhere" ? await context.server.reachChosen() : (reached?.status ?? null);
  if (args.flag("json")) {
    const where = { commands: target.kind, ...(target.kind === "elsewhere" && target.context !== null && { context: target.context }) };
    await context.stdout.printJson(
      found === null ? { running: false, ...where } : { running: true, ...found, ...(reached && { socket: reached.socketPath }), ...where },
    );
  } else if (found === null) {
    await context.stderr.print(line`caisson: no station is running`);
  } else {
    const { pid, url, startedAt, version, draining, runs, load, stalledMs } = found;
    const rows = [
      ["process", String(pid)],
      ["address", url],
      ...(reached === null ? [] : [["socket", reached.socketPath]]),
      ["since", startedAt],
      ["version", version],
      ["runs", `${runs.atWork} at work, ${runs.queued} queued${draining ? "; draining" : ""}`],
      ...(load === undefined ? [] : [["load", loadText(load)]]),
      ...(stalledMs === undefined
        ? []
        : [["stalled", `for ${Math.round(stalledMs / 1000)} s: waiting for its disk, or blocked by a long task`]]),
      ["commands", commandsOf(target)],
    ];
    await context.stdout.print(table(rows));
  }
  return found === null ? 1 : 0;
}

function loadText({ loopDelayMs, waiting, refused }: NonNullable<StationStatus["load"]>): string {
  const all = Object.values(refused).reduce((sum, count) => sum + count, 0);
  return `loop ${loopDelayMs} ms late, ${waiting} requests waiting, ${all} refused since the start`;
}

/** Describes whether commands go through the station. */
function commandsOf(target: CliContext["target"]): string {
  if (target.kind === "socket") return "go through its socket";
  if (target.kind === "elsewhere") return `go through it${target.context === null ? "" : ` (context ${target.context})`}`;
  return `run in their own process${target.unused === undefined ? "" : `: ${target.unused}`}`;
}

/** Prints where the station listens, and its first token on standard output, where a program can read it. */
async function tell(context: CliContext, args: ParsedArguments, { status, socketPath }: ServedStation | ReachedStation): Promise<void> {
  const first = args.flag("no-token") ? null : await firstToken(context);
  if (args.flag("json")) {
    await context.stdout.printJson({ ...status, socket: socketPath, ...(first !== null && { token: first.token }) });
    return;
  }
  await context.stderr.print(line`caisson: the station is process ${status.pid}, listening at ${status.url} and ${socketPath}`);
  if (first === null) return;
  await context.stderr.print(line`caisson: its first token, with all rights, shown only once:`);
  await context.stdout.print(line`${first.token}`);
}

async function firstToken({ station }: CliContext): Promise<NewToken | null> {
  return (await station.tokens.list()).length > 0 ? null : station.tokens.create({ name: "first", scope: "admin" });
}

function whereFrom({ cwd }: CliContext, args: ParsedArguments): ServedWhere {
  const [certPath, keyPath] = [args.option("tls-cert"), args.option("tls-key")];
  if ((certPath === undefined) !== (keyPath === undefined)) {
    throw new CaissonError("invalid", "--tls-cert and --tls-key must be used together", { hint: "Add the missing one." });
  }
  const tls =
    certPath === undefined || keyPath === undefined ? undefined : { certPath: resolve(cwd, certPath), keyPath: resolve(cwd, keyPath) };
  return {
    listenHost: args.option("listen-host") ?? "127.0.0.1",
    port: portFrom(args.option("port")),
    proxies: args.options("proxy"),
    ...defined({ tls, publicUrl: args.option("public-url"), previewsAt: args.option("previews-at") }),
  };
}

/** Returns the options for the background process. */
function optionsOf({ listenHost, port, tls, publicUrl, previewsAt, proxies }: ServedWhere): string[] {
  return [
    ...["--port", String(port), "--listen-host", listenHost],
    ...(tls === undefined ? [] : ["--tls-cert", tls.certPath, "--tls-key", tls.keyPath]),
    ...(publicUrl === undefined ? [] : ["--public-url", publicUrl]),
    ...(previewsAt === undefined ? [] : ["--previews-at", previewsAt]),
    ...proxies.flatMap((proxy) => ["--proxy", proxy]),
  ];
}

const readyOf = (args: ParsedArguments) => args.options("ready").flatMap((number) => ["--ready", number]);

function portFrom(text: string | undefined): number {
  if (text === undefined) return PORT_DEFAULT;
  if (/^[0-9]{1,5}$/.test(text) && Number(text) <= PORT_MAX) return Number(text);
  throw new CaissonError("invalid", `--port ${JSON.stringify(text)} is not a port`, { hint: `Use a number from 0 to ${PORT_MAX}.` });
}
