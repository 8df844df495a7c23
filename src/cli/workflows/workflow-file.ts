import { resolve } from "node:path";
import { parse } from "yaml";
import { CaissonError } from "../../contract/error/error.ts";
import { ignoring } from "../../lib/failures.ts";
import { readRegularFile } from "../../lib/read-regular-file.ts";
import type { ParsedArguments } from "../command.ts";

const FILE_BYTES_MAX = 1024 * 1024;

/**
 * Reads a workflow definition in YAML, of which JSON is a part. Throws `not_found`, `too_large`, and `invalid` with the
 * position.
 */
export async function readWorkflowFile(path: string, { cwd }: { cwd: string }): Promise<unknown> {
  const file = await readRegularFile(resolve(cwd, path), { bytesMax: FILE_BYTES_MAX }).catch((error: unknown) => {
    throw new CaissonError("not_found", `the workflow ${path} cannot be read (${(error as NodeJS.ErrnoException).code})`, { cause: error });
  });
  if (file === "too large") throw new CaissonError("too_large", `the workflow ${path} is larger than ${FILE_BYTES_MAX} bytes`);
  if (typeof file === "string") throw new CaissonError("invalid", `the workflow ${path} is ${file}`);
  try {
    return parse(file.bytes.toString("utf8"), { maxAliasCount: 100, prettyErrors: true });
  } catch (error) {
    const [where = ""] = (error as Error).message.split("\n", 1);
    throw new CaissonError("invalid", `the workflow ${path} is not YAML: ${where.slice(0, 300)}`, { cause: error });
  }
}

/** Parses `--input NAME=VALUE`; a value is JSON if it parses as such. Throws `invalid`. */
export function workflowInputs(args: ParsedArguments): Record<string, unknown> {
  return Object.fromEntries(
    args.options("input").map((text) => {
      const equals = text.indexOf("=");
      if (equals < 1) throw new CaissonError("invalid", `--input ${JSON.stringify(text)} is not NAME=VALUE`);
      return [text.slice(0, equals), jsonOrText(text.slice(equals + 1))];
    }),
  );
}

export function jsonOrText(text: string): unknown {
  const value = ignoring("text that is not JSON stays text", () => JSON.parse(text));
  return value === undefined ? text : value;
}
