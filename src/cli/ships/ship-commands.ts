import { isAbsolute, resolve } from "node:path";
import { CaissonError } from "../../contract/error.ts";
import { BranchKind, ForgeKind } from "../../contract/ship.ts";
import type { ShipView, StartShip } from "../../contract/ship-verbs.ts";
import { defined } from "../../lib/defined.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { parseChoice } from "../options/option-values.ts";
import { runNamed } from "../runs/run-named.ts";
import { line } from "../terminal/line.ts";
import { table } from "../terminal/table.ts";
import { followShip, isSettled } from "./follow-ship.ts";
import { eventText, outcomeText } from "./ship-text.ts";

/** `caisson ship [RUN|SESSION|SPEC]` */
export async function start(context: CliContext, given: ParsedArguments): Promise<number> {
  const forge = given.option("forge");
  const kind = given.option("kind");
  const request: StartShip = {
    of: await runNamed(context, given.positionals[0]),
    ...defined({
      allowPrivate: given.flag("allow-private") || undefined,
      merge: given.flag("merge") || undefined,
      includeConfiguration: given.flag("include-config") || undefined,
      leaveOut: given.flag("leave-out") || undefined,
      to: remoteFrom(context, given.option("to")),
      forge: forge === undefined ? undefined : parseChoice(...ForgeKind.options)("forge", forge),
      kind: kind === undefined ? undefined : parseChoice(...BranchKind.options)("kind", kind),
      into: given.option("into"),
      token: given.option("token"),
      ticket: given.option("ticket"),
      title: given.option("title"),
      body: given.option("body"),
      tests: given.option("tests"),
      withoutTests: given.option("without-tests"),
    }),
  };
  const ship = await context.station.ships.start(request);
  if (!given.flag("json"))
    await context.stderr.print(line`caisson: ${ship.id} ships ${ship.spec ?? ship.session} to ${ship.target.remote}`);
  return await follow(context, given, ship);
}

/** A path is relative to where one stands; anything else is an address. */
function remoteFrom({ cwd }: CliContext, text: string | undefined): string | undefined {
  return text === undefined || isAbsolute(text) || !/^\.{1,2}(?:\/|$)/.test(text) ? text : resolve(cwd, text);
}

/** `caisson ship merge SHIP` */
export async function merge(context: CliContext, given: ParsedArguments): Promise<number> {
  return await follow(context, given, await context.station.ships.merge(given.positionals[0] ?? "", { by: userOf(context) }));
}

/** `caisson ship resume SHIP` */
export async function resume(context: CliContext, given: ParsedArguments): Promise<number> {
  return await follow(context, given, await context.station.ships.resume(given.positionals[0] ?? "", { by: userOf(context) }));
}

/** `caisson ship cancel SHIP` */
export async function cancel(context: CliContext, given: ParsedArguments): Promise<number> {
  const ship = await context.station.ships.cancel(given.positionals[0] ?? "", { by: userOf(context) });
  return await follow(context, given, ship, { until: ["cancelled", "merged"] });
}

/** `caisson ship pause SHIP` */
export async function pause(context: CliContext, given: ParsedArguments): Promise<number> {
  const ship = await context.station.ships.pause(given.positionals[0] ?? "", { by: userOf(context) });
  if (given.flag("json")) await context.stdout.printJson(ship);
  return 0;
}

/** `caisson ship rm SHIP…` */
export async function remove(context: CliContext, given: ParsedArguments): Promise<number> {
  for (const word of given.positionals) {
    const { id } = await context.station.ships.get(word);
    await context.station.ships.remove(id);
    await context.stdout.print(line`${id}`);
  }
  return 0;
}

const userOf = (context: CliContext) => context.variable("USER") ?? "user";

/** Tells what happens until somebody has to say something, and then what has come of it. */
async function follow(
  context: CliContext,
  given: ParsedArguments,
  begun: ShipView,
  { until }: { until?: readonly ShipView["status"][] } = {},
): Promise<number> {
  const isJson = given.flag("json");
  const ship = given.flag("detach") ? begun : await followShip(context, begun, { isQuiet: isJson, ...(until && { until }) });
  if (isJson) await context.stdout.printJson(ship);
  else if (given.flag("detach")) await context.stdout.print(line`${ship.id}`);
  else if (isSettled(ship)) await context.stdout.print(outcomeText(ship));
  if (ship.status !== "blocked") return 0;
  const { error } = ship;
  throw new CaissonError("conflict", `${ship.id} is stuck: ${error?.message ?? "it is not known why"}`, {
    hint: error?.hint ?? `Fix it, then: caisson ship resume ${ship.id}`,
  });
}

/** `caisson ship ls` */
export async function list(context: CliContext, given: ParsedArguments): Promise<number> {
  const { items: ships } = await context.station.ships.list(given.flag("all") ? {} : { state: "open" });
  if (given.flag("json")) await context.stdout.printJson(ships);
  else if (ships.length > 0)
    await context.stdout.print(table([["SHIP", "STATUS", "BRANCH", "INTO", "REQUEST", "TITLE"], ...ships.map(row)]));
  return 0;
}

function row({ id, status, step, branch, into, request, title }: ShipView): string[] {
  return [id, step === null ? status : `${status} (${step.replace("_", " ")})`, branch ?? "", into ?? "", request?.url ?? "", title];
}

/** `caisson ship show SHIP` */
export async function show(context: CliContext, given: ParsedArguments): Promise<number> {
  const ship = await context.station.ships.get(given.positionals[0] ?? "");
  if (given.flag("json")) {
    await context.stdout.printJson(ship);
    return 0;
  }
  await context.stdout.print(table(facts(ship)));
  for (const event of ship.history) await context.stdout.print(line`${event.at}  ${eventText(event)}`);
  return 0;
}

function facts(ship: ShipView): string[][] {
  const { tests, error } = ship;
  const tested =
    tests.kind === "ran" ? `${tests.command} (exit code ${tests.exitCode}, ${tests.run} event ${tests.endedSeq})` : `none: ${tests.reason}`;
  const all: [string, string | null][] = [
    ["ship", ship.id],
    ["status", ship.status],
    ["title", ship.title],
    ["of", ship.spec ?? ship.run ?? ship.session],
    ["remote", ship.target.remote],
    ["branch", ship.branch],
    ["into", ship.into],
    ["commit", ship.commit],
    ["request", ship.request?.url ?? null],
    ["merged", ship.merged],
    ["tests", tested],
    ["error", error === null ? null : `${error.message}${error.hint === undefined ? "" : ` ${error.hint}`}`],
    ["next try", ship.nextAt],
  ];
  return all.flatMap(([name, value]) => (value === null ? [] : [[name, value]]));
}
