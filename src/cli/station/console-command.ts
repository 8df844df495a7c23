import { CaissonError } from "../../contract/error.ts";
import { Scope, type TokenView } from "../../contract/token-verbs.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { parseChoice, parseDuration } from "../options/option-values.ts";
import { line } from "../terminal/line.ts";

const EXPIRES_MS = 12 * 3_600_000;
/** What the tokens of opened consoles are called; a number follows. */
const NAME = "console-";

/** `caisson console`: the address of the station's pages, with a token that a browser takes out of it. */
export async function openConsole(context: CliContext, given: ParsedArguments): Promise<number> {
  const { target } = context;
  const status = target.kind === "elsewhere" ? await context.server.reachChosen() : (await context.server.reach())?.status;
  if (!status) {
    throw new CaissonError("unavailable", "no station runs, and it is what serves the console", { hint: "Start one: caisson up --detach" });
  }
  const scope = parseChoice(...Scope.options)("scope", given.option("scope") ?? "admin");
  const expires = given.option("expires");
  const expiresInMs = expires === undefined ? EXPIRES_MS : parseDuration("expires", expires);
  const { tokens } = context.station;
  const earlier = (await tokens.list()).filter(({ name }) => name.startsWith(NAME));
  for (const { id } of earlier.filter(hasExpired)) await tokens.revoke(id);
  const made = await tokens.create({ name: freeName(earlier), scope, expiresInMs });
  // What follows `#` stays in the browser: no server and no proxy is sent it.
  const url = `${status.url}/#token=${made.token}`;
  if (given.flag("json")) await context.stdout.printJson({ url, token: made.id, scope, expiresAt: made.expiresAt });
  else await context.stdout.print(line`${url}`);
  return 0;
}

const hasExpired = ({ expiresAt }: TokenView): boolean => expiresAt !== null && Date.parse(expiresAt) <= Date.now();

function freeName(earlier: readonly TokenView[]): string {
  const numbers = earlier.map(({ name }) => Number(name.slice(NAME.length))).filter(Number.isInteger);
  return `${NAME}${Math.max(0, ...numbers) + 1}`;
}
