import { resolve } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { StationStatus } from "../../contract/api/station-routes.ts";
import { CaissonError } from "../../contract/error.ts";
import type { NewToken } from "../../contract/token-verbs.ts";
import { defined } from "../../lib/defined.ts";
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
export async function up(context: CliContext, given: ParsedArguments): Promise<number> {
  const where = whereFrom(context, given);
  if (given.flag("detach")) {
    const args = ["up", "--no-token", ...optionsOf(where), ...readyOf(given), ...detachedLogOptions(context, given)];
    await tell(context, given, await context.server.startDetached(args));
    return 0;
  }
  await using server = await context.server.start({ ...where, log: logFrom(context, given) });
  await tell(context, given, server);
  const asked = await Promise.race([context.interruption.first, server.askedToEnd]);
  if (typeof asked === "object" && asked.drain) await drained(context, server, asked.timeoutMs);
  const { atWork } = server.status.runs;
  await context.stderr.print(
    line`caisson: the station ends${atWork === 0 ? "" : `; ${runsText(atWork)} let go, and the next one goes on with`}`,
  );
  // Whoever asks twice does not want to wait; the next station finds everything.
  void context.interruption.second.then((signal) => process.exit(exitCodeOf(signal)));
  await server.close();
  return 0;
}

/** Until the runs that it drives are over, the time is, or somebody does not want to wait. */
async function drained(context: CliContext, server: ServedStation, timeoutMs: number | undefined): Promise<void> {
  const over = new AbortController();
  const timeout = timeoutMs === undefined ? new Promise<never>(() => {}) : delay(timeoutMs, undefined, over);
  const { atWork } = server.status.runs;
  if (atWork > 0) await context.stderr.print(line`caisson: the station takes no new work, and waits for ${runsText(atWork)}`);
  try {
    await Promise.race([server.drained(), server.askedToEndAtOnce, timeout, context.interruption.first]);
  } finally {
    over.abort();
  }
}

const runsText = (runs: number) => `${runs} ${runs === 1 ? "run" : "runs"}`;

/** `caisson down` */
export async function down(context: CliContext, given: ParsedArguments): Promise<number> {
  const timeout = given.option("timeout");
  const drain = given.flag("drain");
  if (timeout !== undefined && !drain)
    throw new CaissonError("invalid", "--timeout is how long --drain waits", { hint: "Give --drain, too." });
  const timeoutMs = timeout === undefined ? undefined : parseDuration("timeout", timeout);
  const reached = await context.server.reach();
  const onWait = (runs: number) => context.stderr.print(line`caisson: the station waits for ${runsText(runs)}`);
  await reached?.shutDown({ drain, onWait, ...defined({ timeoutMs }) });
  if (given.flag("json")) await context.stdout.printJson({ ended: reached?.status.pid ?? null });
  else if (reached === null) await context.stderr.print(line`caisson: no station runs`);
  else await context.stderr.print(line`caisson: the station ${reached.status.pid} has ended`);
  return 0;
}

/** `caisson status` */
export async function status(context: CliContext, given: ParsedArguments): Promise<number> {
  const { target } = context;
  const reached = target.kind === "elsewhere" ? null : await context.server.reach();
  const found = target.kind === "elsewhere" ? await context.server.reachChosen() : (reached?.status ?? null);
  if (given.flag("json")) {
    const where = { commands: target.kind, ...(target.kind === "elsewhere" && target.context !== null && { context: target.context }) };
    await context.stdout.printJson(
      found === null ? { running: false, ...where } : { running: true, ...found, ...(reached && { socket: reached.socketPath }), ...where },
    );
  } else if (found === null) {
    await context.stderr.print(line`caisson: no station runs`);
  } else {
    const { pid, url, startedAt, version, draining, runs, load, stalledMs } = found;
    const rows = [
      ["process", String(pid)],
      ["address", url],
      ...(reached === null ? [] : [["socket", reached.socketPath]]),
      ["since", startedAt],
      ["version", version],
      ["runs", `${runs.atWork} at work, ${runs.queued} queued${draining ? "; it takes no more, and ends" : ""}`],
      ...(load === undefined ? [] : [["load", loadText(load)]]),
      ...(stalledMs === undefined
        ? []
        : [["stalled", `for ${Math.round(stalledMs / 1000)} s: it waits for its disk, or a long task blocks it`]]),
      ["commands", commandsOf(target)],
    ];
    await context.stdout.print(table(rows));
  }
  return found === null ? 1 : 0;
}

function loadText({ loopDelayMs, waiting, refused }: NonNullable<StationStatus["load"]>): string {
  const all = Object.values(refused).reduce((sum, count) => sum + count, 0);
  return `loop ${loopDelayMs} ms late, ${waiting} requests wait, ${all} refused since the start`;
}

/** How commands work while it runs. */
function commandsOf(target: CliContext["target"]): string {
  if (target.kind === "socket") return "work through it, by its socket";
  if (target.kind === "elsewhere") return `work through it${target.context === null ? "" : `: it is the context ${target.context}`}`;
  return `do their work themselves${target.unused === undefined ? "" : `: ${target.unused}`}`;
}

/** Where it is, and the first token, on standard output: what a program may want to read. */
async function tell(context: CliContext, given: ParsedArguments, { status, socketPath }: ServedStation | ReachedStation): Promise<void> {
  const first = given.flag("no-token") ? null : await firstToken(context);
  if (given.flag("json")) {
    await context.stdout.printJson({ ...status, socket: socketPath, ...(first !== null && { token: first.token }) });
    return;
  }
  await context.stderr.print(line`caisson: the station is process ${status.pid}, at ${status.url} and ${socketPath}`);
  if (first === null) return;
  await context.stderr.print(line`caisson: its first token, for everything; it is not shown again:`);
  await context.stdout.print(line`${first.token}`);
}

async function firstToken({ station }: CliContext): Promise<NewToken | null> {
  return (await station.tokens.list()).length > 0 ? null : station.tokens.create({ name: "first", scope: "admin" });
}

function whereFrom({ cwd }: CliContext, given: ParsedArguments): ServedWhere {
  const [certPath, keyPath] = [given.option("tls-cert"), given.option("tls-key")];
  if ((certPath === undefined) !== (keyPath === undefined)) {
    throw new CaissonError("invalid", "a certificate and its key belong together", { hint: "Give both --tls-cert and --tls-key." });
  }
  const tls =
    certPath === undefined || keyPath === undefined ? undefined : { certPath: resolve(cwd, certPath), keyPath: resolve(cwd, keyPath) };
  return {
    listenHost: given.option("listen-host") ?? "127.0.0.1",
    port: portFrom(given.option("port")),
    proxies: given.options("proxy"),
    ...defined({ tls, publicUrl: given.option("public-url"), previewsAt: given.option("previews-at") }),
  };
}

/** The same again, for the process in the background. */
function optionsOf({ listenHost, port, tls, publicUrl, previewsAt, proxies }: ServedWhere): string[] {
  return [
    ...["--port", String(port), "--listen-host", listenHost],
    ...(tls === undefined ? [] : ["--tls-cert", tls.certPath, "--tls-key", tls.keyPath]),
    ...(publicUrl === undefined ? [] : ["--public-url", publicUrl]),
    ...(previewsAt === undefined ? [] : ["--previews-at", previewsAt]),
    ...proxies.flatMap((proxy) => ["--proxy", proxy]),
  ];
}

const readyOf = (given: ParsedArguments) => given.options("ready").flatMap((number) => ["--ready", number]);

function portFrom(text: string | undefined): number {
  if (text === undefined) return PORT_DEFAULT;
  if (/^[0-9]{1,5}$/.test(text) && Number(text) <= PORT_MAX) return Number(text);
  throw new CaissonError("invalid", `--port ${JSON.stringify(text)} is not a port`, { hint: `A port is a number from 0 to ${PORT_MAX}.` });
}
