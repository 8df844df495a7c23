import { CaissonError } from "../../contract/error/error.ts";
import { parseSecret } from "../../contract/network/network-text.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { printResult, removeNamed } from "../print-result.ts";
import { askSecret } from "../terminal/ask-secret.ts";
import { canAsk } from "../terminal/ask-yes.ts";
import { line } from "../terminal/line.ts";
import { tableOf } from "../terminal/table.ts";

const VALUE_BYTES_MAX = 65_536;

/** `caisson secret set NAME@HOST[;…]` */
export async function set(context: CliContext, args: ParsedArguments): Promise<number> {
  const [text = ""] = args.positionals;
  const { name, config } = parseSecret(text);
  const { from, ...scope } = config;
  if (from !== "env") {
    throw new CaissonError("invalid", "a secret that the station stores cannot have a source", {
      hint: "Remove ;from=. The value is read from standard input, or typed at a prompt.",
    });
  }
  const value = canAsk(context) ? await askSecret(context, line`Value of ${name}:`) : await valueFromInput(context);
  const secret = await context.station.secrets.set(name, { ...scope, value });
  return await printResult(context, args, { json: secret, note: line`stored the secret ${name} for ${secret.hosts.join(", ")}` });
}

/** `caisson secret ls` */
export async function listSecrets(context: CliContext, args: ParsedArguments): Promise<number> {
  const secrets = await context.station.secrets.list();
  const rows = secrets.map(({ name, hosts, owner, createdAt, updatedAt }) => [name, hosts.join(", "), owner, createdAt, updatedAt]);
  return await printResult(context, args, { json: secrets, text: tableOf(["NAME", "HOSTS", "OWNER", "CREATED", "CHANGED"], rows) });
}

/** `caisson secret rm NAME…` */
export async function removeSecrets(context: CliContext, args: ParsedArguments): Promise<number> {
  return await removeNamed(context, args, { remove: (name) => context.station.secrets.remove(name) });
}

/** Reads all of standard input, without the newline that programs append. */
async function valueFromInput({ stdin }: CliContext): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of stdin) {
    chunks.push(Buffer.from(chunk));
    bytes += chunk.length;
    if (bytes > VALUE_BYTES_MAX) throw new CaissonError("too_large", "standard input is too long for a secret");
  }
  const value = Buffer.concat(chunks)
    .toString("utf8")
    .replace(/\r?\n$/, "");
  if (value !== "") return value;
  throw new CaissonError("invalid", "there is no value: standard input is empty", {
    hint: 'Pipe it in: printf %s "$VALUE" | caisson secret set NAME@HOST',
  });
}
