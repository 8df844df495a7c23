import { isAbsolute, resolve } from "node:path";
import { CaissonError } from "../../contract/error/error.ts";
import { branchKinds, forgeKinds } from "../../contract/ship/ship-kinds.ts";
import type { ShipDetails, ShipView, StartShip } from "../../contract/ship/ship-verbs.ts";
import { defined } from "../../lib/defined.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import type { JobKind } from "../durable/job-commands.ts";
import { parseChoice } from "../options/option-values.ts";
import { runNamed } from "../runs/run-named.ts";
import { type Line, line } from "../terminal/line.ts";
import { table } from "../terminal/table.ts";
import { followShip, isSettled } from "./follow-ship.ts";
import { eventText, outcomeText } from "./ship-text.ts";

/** `caisson ship [RUN|SESSION|SPEC]` */
export async function startShip(context: CliContext, args: ParsedArguments): Promise<number> {
  const forge = args.option("forge");
  const kind = args.option("kind");
  const request: StartShip = {
    of: await runNamed(context, args.positionals[0]),
    ...defined({
      allowPrivate: args.flag("allow-private") || undefined,
      merge: args.flag("merge") || undefined,
      includeConfiguration: args.flag("include-config") || undefined,
      leaveOut: args.flag("leave-out") || undefined,
      to: remoteFrom(context, args.option("to")),
      forge: forge === undefined ? undefined : parseChoice(...forgeKinds)("forge", forge),
      kind: kind === undefined ? undefined : parseChoice(...branchKinds)("kind", kind),
      into: args.option("into"),
      token: args.option("token"),
      ticket: args.option("ticket"),
      title: args.option("title"),
      body: args.option("body"),
      tests: args.option("tests"),
      withoutTests: args.option("without-tests"),
    }),
  };
  const ship = await context.station.ships.start(request);
  if (!args.flag("json"))
    await context.stderr.print(line`caisson: ${ship.id} is shipping ${ship.spec ?? ship.session} to ${ship.target.remote}`);
  return await follow(context, args, ship);
}

/** Resolves a relative path in the current folder; anything else is a URL. */
function remoteFrom({ cwd }: CliContext, text: string | undefined): string | undefined {
  return text === undefined || isAbsolute(text) || !/^\.{1,2}(?:\/|$)/.test(text) ? text : resolve(cwd, text);
}

/** `caisson ship merge SHIP` */
export async function mergeShip(context: CliContext, args: ParsedArguments): Promise<number> {
  return await follow(context, args, await context.station.ships.merge(args.positionals[0] ?? "", { by: userOf(context) }));
}

export const shipKind: JobKind<ShipDetails, ShipView, ShipView> = {
  verb: "ship",
  verbs: ({ ships }) => ships,
  idOf: ({ id }) => id,
  actor: userOf,
  list: async ({ station }, args) => (await station.ships.list(args.flag("all") ? {} : { state: "open" })).items,
  rows: shipRows,
  lines: (ship) => [...table(facts(ship)), ...ship.history.map((event) => line`${event.at}  ${eventText(event)}`)],
  describePaused: () => ({}),
  reportCancelled: (context, args, ship) => follow(context, args, ship, { until: ["cancelled", "merged"] }),
  resume: async (context, args) =>
    await follow(context, args, await context.station.ships.resume(args.positionals[0] ?? "", { by: userOf(context) })),
};

function userOf(context: CliContext): string {
  return context.variable("USER") ?? "user";
}

/** Prints a ship's progress until it needs a person or finishes, then its outcome. */
async function follow(
  context: CliContext,
  args: ParsedArguments,
  initialShip: ShipView,
  { until }: { until?: readonly ShipView["status"][] } = {},
): Promise<number> {
  const isJson = args.flag("json");
  const ship = args.flag("detach") ? initialShip : await followShip(context, initialShip, { isQuiet: isJson, ...(until && { until }) });
  if (isJson) await context.stdout.printJson(ship);
  else if (args.flag("detach")) await context.stdout.print(line`${ship.id}`);
  else if (isSettled(ship)) await context.stdout.print(outcomeText(ship));
  if (ship.status !== "blocked") return 0;
  const { error } = ship;
  throw new CaissonError("conflict", `${ship.id} is stuck: ${error?.message ?? "the reason is unknown"}`, {
    hint: error?.hint ?? `Fix the problem, then run: caisson ship resume ${ship.id}`,
  });
}

function shipRows(ships: readonly ShipView[]): Line[] {
  const rows = ships.map(({ id, status, step, branch, into, request, title }) => [
    ...[id, step === null ? status : `${status} (${step.replace("_", " ")})`, branch ?? "", into ?? "", request?.url ?? "", title],
  ]);
  return rows.length === 0 ? [] : table([["SHIP", "STATUS", "BRANCH", "INTO", "REQUEST", "TITLE"], ...rows]);
}

function facts(ship: ShipView): string[][] {
  const { tests, error } = ship;
  const tested =
    tests.kind === "ran" ? `${tests.command} (exit code ${tests.exitCode}, ${tests.run} event ${tests.endedSeq})` : `none: ${tests.reason}`;
  const all: [string, string | null][] = [
    ["ship", ship.id],
    ["status", ship.status],
    ["title", ship.title],
    ["source", ship.spec ?? ship.run ?? ship.session],
    ["remote", ship.target.remote],
    ["branch", ship.branch],
    ["into", ship.into],
    ["commit", ship.commit],
    ["request", ship.request?.url ?? null],
    ["merged", ship.merged],
    ["tests", tested],
    ["error", error === null ? null : `${error.message}${error.hint === undefined ? "" : ` ${error.hint}`}`],
    ["next attempt", ship.nextAt],
  ];
  return all.flatMap(([name, value]) => (value === null ? [] : [[name, value]]));
}
