import { resolve } from "node:path";
import { parse } from "yaml";
import { CaissonError } from "../../contract/error.ts";
import { readRegularFile } from "../../lib/read-regular-file.ts";
import type { ParsedArguments } from "../command.ts";

const FILE_BYTES_MAX = 1024 * 1024;

/** A definition as its file says it; JSON is YAML, too. Throws `not_found`, `too_large`, `invalid` with the place. */
export async function readWorkflowFile(path: string, { cwd }: { cwd: string }): Promise<unknown> {
  const file = await readRegularFile(resolve(cwd, path), { bytesMax: FILE_BYTES_MAX }).catch((error: unknown) => {
    throw new CaissonError("not_found", `the workflow ${path} cannot be read (${(error as NodeJS.ErrnoException).code})`, { cause: error });
  });
  if (file === "too large") throw new CaissonError("too_large", `the workflow ${path} has more than ${FILE_BYTES_MAX} bytes`);
  if (typeof file === "string") throw new CaissonError("invalid", `the workflow ${path} is ${file}`);
  try {
    return parse(file.bytes.toString("utf8"), { maxAliasCount: 100, prettyErrors: true });
  } catch (error) {
    const [where = ""] = (error as Error).message.split("\n", 1);
    throw new CaissonError("invalid", `the workflow ${path} is not YAML: ${where.slice(0, 300)}`, { cause: error });
  }
}

/** `--input NAME=VALUE`, each as JSON where it is that. Throws `invalid`. */
export function workflowInputs(given: ParsedArguments): Record<string, unknown> {
  return Object.fromEntries(
    given.options("input").map((text) => {
      const equals = text.indexOf("=");
      if (equals < 1) throw new CaissonError("invalid", `--input ${JSON.stringify(text)} is not NAME=VALUE`);
      return [text.slice(0, equals), jsonOrText(text.slice(equals + 1))];
    }),
  );
}

export function jsonOrText(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
