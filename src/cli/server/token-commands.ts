import { Scope, type TokenView } from "../../contract/token/token-verbs.ts";
import { defined } from "../../lib/defined.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { parseChoice, parseDays, parseDuration } from "../options/option-values.ts";
import { printResult, removeNamed } from "../print-result.ts";
import { line } from "../terminal/line.ts";
import { tableOf } from "../terminal/table.ts";

/** `caisson token create NAME` */
export async function create(context: CliContext, args: ParsedArguments): Promise<number> {
  const [name = ""] = args.positionals;
  const expires = args.option("expires");
  const scope = parseChoice(...Scope.options)("scope", args.option("scope") ?? "run");
  const expiresInMs = expires === undefined ? undefined : parseDuration("expires", expires);
  const token = await context.station.tokens.create({ name, scope, ...defined({ owner: args.option("owner"), expiresInMs }) });
  return await printResult(context, args, { json: token, text: line`${token.token}` });
}

/** `caisson token ls` */
export async function listTokens(context: CliContext, args: ParsedArguments): Promise<number> {
  const tokens = await context.station.tokens.list();
  const headings = ["NAME", "ID", "SCOPE", "OWNER", "CREATED", "EXPIRES"];
  return await printResult(context, args, { json: tokens, text: tableOf(headings, tokens.map(row)) });
}

function row({ name, id, scope, owner, createdAt, expiresAt }: TokenView): string[] {
  const expired = expiresAt !== null && Date.parse(expiresAt) <= Date.now();
  return [name, id, scope, owner, createdAt, expiresAt === null ? "never" : expired ? `expired ${expiresAt}` : expiresAt];
}

/** `caisson token rm NAME|ID…` */
export async function removeTokens(context: CliContext, args: ParsedArguments): Promise<number> {
  return await removeNamed(context, args, {
    remove: async (word) => (await context.station.tokens.revoke(word)).name,
    describe: (name) => ({ note: line`revoked the token ${name}` }),
  });
}

/** `caisson token rotate NAME|ID` */
export async function rotate(context: CliContext, args: ParsedArguments): Promise<number> {
  const grace = args.option("grace");
  const token = await context.station.tokens.rotate(
    args.positionals[0] ?? "",
    grace === undefined ? {} : { graceMs: parseDays("grace", grace) },
  );
  return await printResult(context, args, { json: token, text: line`${token.token}` });
}
