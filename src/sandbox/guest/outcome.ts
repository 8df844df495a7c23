import { constants } from "node:os";
import type { Ended } from "../../contract/outcome.ts";
import type { Decoded, shapes } from "./fields.ts";
import { protocolError } from "./frame.ts";

const signalNames = new Map<number, string>(Object.entries(constants.signals).map(([name, number]) => [number, name]));

/** Converts an `ENDED` frame to an outcome. Throws `protocol` for impossible values. */
export function outcomeOf(fields: Decoded<typeof shapes.ENDED>): Ended {
  const { exitCode, signal, stdoutBytes, stderrBytes, durationMs, memoryKills } = fields;
  const common = { durationMs, stdoutBytes, stderrBytes, memoryKills };
  switch (fields.kind) {
    case 1:
      if (exitCode > 255) throw protocolError(`exit code ${exitCode}`);
      return { kind: "exited", exitCode, ...common };
    case 2:
      if (signal < 1 || signal > 64) throw protocolError(`signal ${signal}`);
      return { kind: "signaled", signal: signalNames.get(signal) ?? `SIG${signal}`, ...common };
    case 3:
      return { kind: "timedOut", ...common };
    case 4:
      return { kind: "killed", why: "memory", ...common };
    case 5:
      return { kind: "killed", why: "output", ...common };
    case 6:
      return { kind: "killed", why: "cancelled", ...common };
    case 7:
      return { kind: "killed", why: "disk", ...common };
    default:
      throw protocolError(`an end of kind ${fields.kind}`);
  }
}
