import { readFileSync } from "node:fs";
import { CaissonError } from "../../../contract/error/error.ts";
import { type UnpackRequest, unpackImage } from "./unpack-image.ts";

const CALLER_CHECK_MS = 100;

/**
 * The process that unpacks an image. It keeps the file work off the caller's event loop, and can be started as root of
 * a user namespace. Its argument is a file with the request as JSON; it answers with one line of JSON on stdout.
 */
async function main(): Promise<void> {
  process.umask(0);
  // A sweep removes what a killed caller left, so this process must not continue to write there.
  const caller = process.ppid;
  const watch = setInterval(() => process.ppid !== caller && process.exit(125), CALLER_CHECK_MS);
  try {
    const request = JSON.parse(readFileSync(process.argv[2] ?? "", "utf8")) as UnpackRequest;
    answer({ counts: await unpackImage(request) });
  } catch (cause) {
    const error = cause instanceof CaissonError ? cause : new CaissonError("internal", `could not unpack the image: ${String(cause)}`);
    answer({ error: error.toJSON() });
  }
  clearInterval(watch);
}

function answer(value: unknown): void {
  process.stdout.write(`${JSON.stringify(value)}\n`);
}

await main();
