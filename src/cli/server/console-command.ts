import { CaissonError } from "../../contract/error/error.ts";
import { Scope } from "../../contract/token/token-verbs.ts";
import { defined } from "../../lib/defined.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { parseChoice, parseDuration } from "../options/option-values.ts";
import { line } from "../terminal/line.ts";

/** `caisson console`: prints the console's URL with a code that signs one browser in. */
export async function openConsole(context: CliContext, args: ParsedArguments): Promise<number> {
  const scope = parseChoice(...Scope.options)("scope", args.option("scope") ?? "admin");
  const expires = args.option("expires");
  const expiresInMs = expires === undefined ? undefined : parseDuration("expires", expires);
  const result = await context.server.createCode({ scope, ...defined({ expiresInMs }) }).catch((error: unknown) => {
    throw withSignInHint(error, context);
  });
  if (result === null) {
    throw new CaissonError("unavailable", "no station is running to serve the console", { hint: "Start one: caisson up --detach" });
  }
  const { code, ...rest } = result.code;
  // Browsers do not send the part after `#`, so no server or proxy sees it.
  const url = `${result.url}/#code=${code}`;
  if (args.flag("json")) await context.stdout.printJson({ url, ...rest });
  else await context.stdout.print(line`${url}`);
  return 0;
}

/** Adds that a token that may not create codes can still sign in itself. */
function withSignInHint(error: unknown, { target }: CliContext): unknown {
  if (!(error instanceof CaissonError) || error.code !== "denied" || target.kind !== "elsewhere") return error;
  return new CaissonError("denied", error.message, {
    cause: error,
    hint: `Open ${target.url} and paste the token of this context to sign in.`,
  });
}
