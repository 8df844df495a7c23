import { CaissonError } from "../../contract/error.ts";
import { DeliveryState, type DeliveryView, type WebhookView } from "../../contract/webhook-verbs.ts";
import { defined } from "../../lib/defined.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { parseChoice, parseCount } from "../options/option-values.ts";
import { line } from "../terminal/line.ts";
import { table } from "../terminal/table.ts";

/** `caisson webhook create NAME URL` */
export async function create(context: CliContext, given: ParsedArguments): Promise<number> {
  const [name = "", url = ""] = given.positionals;
  const events = given.options("event").flatMap((each) => each.split(","));
  const allowPrivate = given.flag("allow-private");
  const made = await context.station.webhooks.create({ name, url, allowPrivate, ...(events.length > 0 && { events }) });
  if (given.flag("json")) await context.stdout.printJson(made);
  else {
    await context.stderr.print(line`caisson: ${made.name} is told of ${made.events.join(", ")}; its secret, not shown again:`);
    await context.stdout.print(line`${made.secret}`);
  }
  return 0;
}

/** `caisson webhook ls` */
export async function list(context: CliContext, given: ParsedArguments): Promise<number> {
  const webhooks = await context.station.webhooks.list();
  if (given.flag("json")) await context.stdout.printJson(webhooks);
  else if (webhooks.length > 0)
    await context.stdout.print(table([["NAME", "ID", "URL", "OWNER", "EVENTS", "RETRYING", "DEAD", "STATE"], ...webhooks.map(row)]));
  return 0;
}

function row({ name, id, url, owner, events, retrying, dead, paused }: WebhookView): string[] {
  return [name, id, url, owner, events.join(","), String(retrying), String(dead), paused === null ? "active" : `paused: ${paused}`];
}

/** `caisson webhook rm NAME|ID…` */
export async function remove(context: CliContext, given: ParsedArguments): Promise<number> {
  for (const webhook of given.positionals) {
    const { name } = await context.station.webhooks.remove(webhook);
    await context.stderr.print(line`caisson: the webhook ${name} is removed`);
  }
  return 0;
}

/** `caisson webhook pause NAME|ID` */
export async function pause(context: CliContext, given: ParsedArguments): Promise<number> {
  const { name } = await context.station.webhooks.pause(given.positionals[0] ?? "");
  await context.stderr.print(line`caisson: nothing is sent to ${name} until it is resumed`);
  return 0;
}

/** `caisson webhook resume NAME|ID` */
export async function resume(context: CliContext, given: ParsedArguments): Promise<number> {
  const { name } = await context.station.webhooks.resume(given.positionals[0] ?? "");
  await context.stderr.print(line`caisson: ${name} is told what happened meanwhile, and what happens`);
  return 0;
}

/** `caisson webhook deliveries NAME|ID` */
export async function deliveries(context: CliContext, given: ParsedArguments): Promise<number> {
  const state = given.option("state");
  const limit = given.option("limit");
  const found = await context.station.webhooks.deliveries(
    given.positionals[0] ?? "",
    defined({
      state: state === undefined ? undefined : parseChoice(...DeliveryState.options)("state", state),
      limit: limit === undefined ? undefined : parseCount("limit", limit),
    }),
  );
  if (given.flag("json")) await context.stdout.printJson(found);
  else if (found.length > 0)
    await context.stdout.print(table([["DELIVERY", "OF", "EVENT", "STATE", "ATTEMPTS", "LAST", "NEXT", "WHY"], ...found.map(deliveryRow)]));
  return 0;
}

function deliveryRow({ id, run, sandbox, driven, type, state, attempts, at, nextAt, error }: DeliveryView): string[] {
  return [id, run ?? sandbox ?? driven?.id ?? "", type, state, String(attempts), at, nextAt ?? "", error ?? ""];
}

/** `caisson webhook replay NAME|ID [DELIVERY]` */
export async function replay(context: CliContext, given: ParsedArguments): Promise<number> {
  const [webhook = "", delivery] = given.positionals;
  const { replayed } = await context.station.webhooks.replay(webhook, defined({ delivery }));
  if (given.flag("json")) await context.stdout.printJson({ replayed });
  else await context.stderr.print(line`caisson: ${replayed === 1 ? "one delivery is" : `${replayed} deliveries are`} sent again`);
  return 0;
}

/** `caisson webhook test NAME|ID` */
export async function test(context: CliContext, given: ParsedArguments): Promise<number> {
  const webhook = given.positionals[0] ?? "";
  const { ok, status, error, durationMs } = await context.station.webhooks.test(webhook);
  if (given.flag("json")) await context.stdout.printJson({ ok, status, error, durationMs });
  else if (ok) await context.stderr.print(line`caisson: ${webhook} answered ${String(status)} after ${durationMs} ms`);
  else
    throw new CaissonError("unavailable", `${webhook} did not take the message: ${error}`, {
      hint: "Nothing was put down of it; try again.",
    });
  return ok ? 0 : 1;
}
