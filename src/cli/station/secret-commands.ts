import { CaissonError } from "../../contract/error.ts";
import { parseSecret } from "../../contract/network-text.ts";
import type { SecretView } from "../../contract/secret-verbs.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { askSecret } from "../terminal/ask-secret.ts";
import { canAsk } from "../terminal/ask-yes.ts";
import { line } from "../terminal/line.ts";
import { table } from "../terminal/table.ts";

const VALUE_BYTES_MAX = 65_536;

/** `caisson secret set NAME@HOST[;…]` */
export async function set(context: CliContext, given: ParsedArguments): Promise<number> {
  const [text = ""] = given.positionals;
  const { name, spec } = parseSecret(text);
  const { from, ...scope } = spec;
  if (from !== "env") {
    throw new CaissonError("invalid", "a secret that the station keeps comes from nowhere else", {
      hint: "Leave ;from= out: its value is read from standard input, or asked for.",
    });
  }
  const value = canAsk(context) ? await askSecret(context, line`Value of ${name}:`) : await valueFromInput(context);
  const kept = await context.station.secrets.set(name, { ...scope, value });
  if (given.flag("json")) await context.stdout.printJson(kept);
  else await context.stderr.print(line`caisson: the secret ${name} is kept, for ${kept.hosts.join(", ")}`);
  return 0;
}

/** `caisson secret ls` */
export async function list(context: CliContext, given: ParsedArguments): Promise<number> {
  const secrets = await context.station.secrets.list();
  if (given.flag("json")) await context.stdout.printJson(secrets);
  else if (secrets.length > 0) await context.stdout.print(table([["NAME", "HOSTS", "OWNER", "CREATED", "CHANGED"], ...secrets.map(row)]));
  return 0;
}

function row({ name, hosts, owner, createdAt, updatedAt }: SecretView): string[] {
  return [name, hosts.join(", "), owner, createdAt, updatedAt];
}

/** `caisson secret rm NAME…` */
export async function remove(context: CliContext, given: ParsedArguments): Promise<number> {
  for (const name of given.positionals) await context.station.secrets.remove(name);
  if (given.flag("json")) await context.stdout.printJson({ removed: given.positionals });
  return 0;
}

/** All of it, without the line's end that programs add. */
async function valueFromInput({ stdin }: CliContext): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of stdin) {
    chunks.push(Buffer.from(chunk));
    bytes += chunk.length;
    if (bytes > VALUE_BYTES_MAX) throw new CaissonError("too_large", "what is on standard input is longer than any secret");
  }
  const value = Buffer.concat(chunks)
    .toString("utf8")
    .replace(/\r?\n$/, "");
  if (value !== "") return value;
  throw new CaissonError("invalid", "there is no value: standard input is empty", {
    hint: 'Write it there: printf %s "$VALUE" | caisson secret set NAME@HOST',
  });
}
