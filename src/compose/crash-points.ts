import { appendFileSync } from "node:fs";
import { type Crashpoint, createCrashpoint } from "../lib/crashpoint.ts";
import { defined } from "../lib/defined.ts";

/** For recovery tests: where to crash, and a file that receives the name of each possible crash point. */
export function crashpointFrom(variable: (name: string) => string | undefined): Crashpoint {
  const list = variable("CAISSON_CRASH_LIST");
  const onPoint = list === undefined ? undefined : (name: string) => appendFileSync(list, `${name}\n`);
  return createCrashpoint(defined({ at: variable("CAISSON_CRASH_AT"), onPoint }));
}
