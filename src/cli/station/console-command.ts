import { CaissonError } from "../../contract/error.ts";
import { Scope } from "../../contract/token-verbs.ts";
import { defined } from "../../lib/defined.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { parseChoice, parseDuration } from "../options/option-values.ts";
import { line } from "../terminal/line.ts";

/** `caisson console`: the address of the station's pages, with a code that signs one browser in. */
export async function openConsole(context: CliContext, given: ParsedArguments): Promise<number> {
  const scope = parseChoice(...Scope.options)("scope", given.option("scope") ?? "admin");
  const expires = given.option("expires");
  const expiresInMs = expires === undefined ? undefined : parseDuration("expires", expires);
  const made = await context.server.createCode({ scope, ...defined({ expiresInMs }) }).catch((error: unknown) => {
    throw withSignInHint(error, context);
  });
  if (made === null) {
    throw new CaissonError("unavailable", "no station runs, and it is what serves the console", { hint: "Start one: caisson up --detach" });
  }
  const { code, ...rest } = made.code;
  // What follows `#` stays in the browser: no server and no proxy is sent it.
  const url = `${made.url}/#code=${code}`;
  if (given.flag("json")) await context.stdout.printJson({ url, ...rest });
  else await context.stdout.print(line`${url}`);
  return 0;
}

/** A token that may not create others still signs in by itself. */
function withSignInHint(error: unknown, { target }: CliContext): unknown {
  if (!(error instanceof CaissonError) || error.code !== "denied" || target.kind !== "elsewhere") return error;
  return new CaissonError("denied", error.message, {
    cause: error,
    hint: `Open ${target.url} and paste the token of this context: it signs in as it is.`,
  });
}
