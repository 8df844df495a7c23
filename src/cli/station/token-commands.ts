import { Scope, type TokenView } from "../../contract/token-verbs.ts";
import { defined } from "../../lib/defined.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { parseChoice, parseDays, parseDuration } from "../options/option-values.ts";
import { line } from "../terminal/line.ts";
import { table } from "../terminal/table.ts";

/** `caisson token create NAME` */
export async function create(context: CliContext, given: ParsedArguments): Promise<number> {
  const [name = ""] = given.positionals;
  const expires = given.option("expires");
  const scope = parseChoice(...Scope.options)("scope", given.option("scope") ?? "run");
  const expiresInMs = expires === undefined ? undefined : parseDuration("expires", expires);
  const made = await context.station.tokens.create({ name, scope, ...defined({ owner: given.option("owner"), expiresInMs }) });
  await (given.flag("json") ? context.stdout.printJson(made) : context.stdout.print(line`${made.token}`));
  return 0;
}

/** `caisson token ls` */
export async function list(context: CliContext, given: ParsedArguments): Promise<number> {
  const tokens = await context.station.tokens.list();
  if (given.flag("json")) await context.stdout.printJson(tokens);
  else if (tokens.length > 0)
    await context.stdout.print(table([["NAME", "ID", "SCOPE", "OWNER", "CREATED", "EXPIRES"], ...tokens.map(row)]));
  return 0;
}

function row({ name, id, scope, owner, createdAt, expiresAt }: TokenView): string[] {
  const expired = expiresAt !== null && Date.parse(expiresAt) <= Date.now();
  return [name, id, scope, owner, createdAt, expiresAt === null ? "never" : expired ? `expired ${expiresAt}` : expiresAt];
}

/** `caisson token rm NAME|ID…` */
export async function remove(context: CliContext, given: ParsedArguments): Promise<number> {
  for (const token of given.positionals) {
    const { name } = await context.station.tokens.revoke(token);
    await context.stderr.print(line`caisson: the token ${name} is revoked`);
  }
  return 0;
}

/** `caisson token rotate NAME|ID` */
export async function rotate(context: CliContext, given: ParsedArguments): Promise<number> {
  const [token = ""] = given.positionals;
  const grace = given.option("grace");
  const made = await context.station.tokens.rotate(token, grace === undefined ? {} : { graceMs: parseDays("grace", grace) });
  await (given.flag("json") ? context.stdout.printJson(made) : context.stdout.print(line`${made.token}`));
  return 0;
}
