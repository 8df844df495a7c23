import { CaissonError } from "../../contract/error/error.ts";
import { deliveryStates } from "../../contract/webhook/delivery-states.ts";
import type { DeliveryView, WebhookView } from "../../contract/webhook/webhook-verbs.ts";
import { defined } from "../../lib/defined.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { parseChoice, parseCount } from "../options/option-values.ts";
import { printResult, removeNamed } from "../print-result.ts";
import { line } from "../terminal/line.ts";
import { tableOf } from "../terminal/table.ts";

/** `caisson webhook create NAME URL` */
export async function create(context: CliContext, args: ParsedArguments): Promise<number> {
  const [name = "", url = ""] = args.positionals;
  const events = args.options("event").flatMap((each) => each.split(","));
  const allowPrivate = args.flag("allow-private");
  const webhook = await context.station.webhooks.create({ name, url, allowPrivate, ...(events.length > 0 && { events }) });
  if (args.flag("json")) await context.stdout.printJson(webhook);
  else {
    await context.stderr.print(line`caisson: ${webhook.name} receives ${webhook.events.join(", ")}; its signing secret, shown only once:`);
    await context.stdout.print(line`${webhook.secret}`);
  }
  return 0;
}

/** `caisson webhook ls` */
export async function listWebhooks(context: CliContext, args: ParsedArguments): Promise<number> {
  const webhooks = await context.station.webhooks.list();
  const headings = ["NAME", "ID", "URL", "OWNER", "EVENTS", "RETRYING", "DEAD", "STATE"];
  return await printResult(context, args, { json: webhooks, text: tableOf(headings, webhooks.map(row)) });
}

function row({ name, id, url, owner, events, retrying, dead, paused }: WebhookView): string[] {
  return [name, id, url, owner, events.join(","), String(retrying), String(dead), paused === null ? "active" : `paused: ${paused}`];
}

/** `caisson webhook rm NAME|ID…` */
export async function removeWebhooks(context: CliContext, args: ParsedArguments): Promise<number> {
  return await removeNamed(context, args, {
    remove: async (word) => (await context.station.webhooks.remove(word)).name,
    describe: (name) => ({ note: line`removed the webhook ${name}` }),
  });
}

/** `caisson webhook pause NAME|ID` */
export async function pause(context: CliContext, args: ParsedArguments): Promise<number> {
  const webhook = await context.station.webhooks.pause(args.positionals[0] ?? "");
  return await printResult(context, args, { json: webhook, note: line`nothing is sent to ${webhook.name} until you resume it` });
}

/** `caisson webhook resume NAME|ID` */
export async function resume(context: CliContext, args: ParsedArguments): Promise<number> {
  const webhook = await context.station.webhooks.resume(args.positionals[0] ?? "");
  return await printResult(context, args, { json: webhook, note: line`${webhook.name} receives the events that it missed, then new ones` });
}

/** `caisson webhook deliveries NAME|ID` */
export async function listDeliveries(context: CliContext, args: ParsedArguments): Promise<number> {
  const state = args.option("state");
  const limit = args.option("limit");
  const deliveries = await context.station.webhooks.deliveries(
    args.positionals[0] ?? "",
    defined({
      state: state === undefined ? undefined : parseChoice(...deliveryStates)("state", state),
      limit: limit === undefined ? undefined : parseCount("limit", limit),
    }),
  );
  const headings = ["DELIVERY", "SUBJECT", "EVENT", "STATE", "ATTEMPTS", "LAST", "NEXT", "WHY"];
  return await printResult(context, args, { json: deliveries, text: tableOf(headings, deliveries.map(deliveryRow)) });
}

function deliveryRow({ id, run, sandbox, driven, type, state, attempts, at, nextAt, error }: DeliveryView): string[] {
  return [id, run ?? sandbox ?? driven?.id ?? "", type, state, String(attempts), at, nextAt ?? "", error ?? ""];
}

/** `caisson webhook replay NAME|ID [DELIVERY]` */
export async function replay(context: CliContext, args: ParsedArguments): Promise<number> {
  const [webhook = "", delivery] = args.positionals;
  const { replayed } = await context.station.webhooks.replay(webhook, defined({ delivery }));
  const count = replayed === 1 ? "1 delivery" : `${replayed} deliveries`;
  return await printResult(context, args, { json: { replayed }, note: line`resending ${count}` });
}

/** `caisson webhook test NAME|ID` */
export async function test(context: CliContext, args: ParsedArguments): Promise<number> {
  const webhook = args.positionals[0] ?? "";
  const { ok, status, error, durationMs } = await context.station.webhooks.test(webhook);
  if (args.flag("json")) await context.stdout.printJson({ ok, status, error, durationMs });
  else if (ok) await context.stderr.print(line`caisson: ${webhook} answered ${String(status)} after ${durationMs} ms`);
  else
    throw new CaissonError("unavailable", `${webhook} did not accept the message: ${error}`, {
      hint: "Nothing was recorded; try again.",
    });
  return ok ? 0 : 1;
}
