import { type Decoded, decodeFields, type Encodable, shapes } from "../../src/sandbox/guest/fields.ts";
import { decodeOutputHead, encodeAck } from "../../src/sandbox/guest/raw.ts";
import { isSanitised } from "./files-client.ts";
import { errorCode, errorMessage, type Link, type Stream } from "./guest-driver.ts";

/** Runs commands in a guest, from their start to their end. */

export interface Finished {
  pid: number;
  ended: Decoded<typeof shapes.ENDED>;
  stdout: string;
  stderr: string;
}
export type Command = Partial<Omit<Encodable<typeof shapes.SPAWN>, "argv">> & { argv: readonly string[] };

let refs = 0;
export const newRef = (): string => `test-${process.pid}-${refs++}`;

export function spawnIn(link: Link, command: Command): { ref: string; stream: Stream } {
  const ref = command.ref ?? newRef();
  // A sanitized `sudo` would check for leaks for seconds.
  const env = ["PATH=/usr/bin:/bin:/usr/sbin:/sbin", ...(isSanitised ? ["ASAN_OPTIONS=detect_leaks=0"] : [])];
  return { ref, stream: link.open("SPAWN", { env, cwd: "/", ...command, ref }) };
}

/** Returns the STARTED of a command; throws for any other frame. */
export async function started(stream: Stream): Promise<Decoded<typeof shapes.STARTED>> {
  const frame = await stream.next();
  if (frame.type === "ERROR") throw new Error(`${errorCode(frame)}: ${errorMessage(frame)}`);
  if (frame.type !== "STARTED") throw new Error(`${frame.type} in place of STARTED`);
  return decodeFields("STARTED", shapes.STARTED, frame.payload);
}

/**
 * Reads a started command to its end, acknowledges its output, and checks that offsets have neither gaps nor overlaps.
 */
export async function finish(link: Link, stream: Stream, from: [number, number] = [0, 0]): Promise<Omit<Finished, "pid">> {
  const parts: [Buffer[], Buffer[]] = [[], []];
  const at: [number, number] = [...from];
  for (;;) {
    const frame = await stream.nextOther("STDIN_ACK");
    if (frame.type === "ENDED") {
      const ended = decodeFields("ENDED", shapes.ENDED, frame.payload);
      if (ended.stdoutBytes !== at[0] || ended.stderrBytes !== at[1]) throw new Error(`ENDED at ${at}, but says otherwise`);
      return { ended, stdout: Buffer.concat(parts[0]).toString(), stderr: Buffer.concat(parts[1]).toString() };
    }
    if (frame.type !== "OUTPUT") throw new Error(frame.type === "ERROR" ? errorCode(frame) : frame.type);
    const { descriptor, offset } = decodeOutputHead(frame.payload);
    const which = (descriptor - 1) as 0 | 1;
    if (offset !== at[which]) throw new Error(`output at ${offset}, expected ${at[which]}`);
    const data = frame.payload.subarray(9);
    parts[which].push(data);
    at[which] += data.length;
    link.send(encodeAck(stream.id, descriptor, at[which]));
  }
}

export async function run(link: Link, command: Command): Promise<Finished> {
  const { stream } = spawnIn(link, command);
  const { pid } = await started(stream);
  return { pid, ...(await finish(link, stream)) };
}

export const shell = (link: Link, script: string, options: Partial<Command> = {}): Promise<Finished> =>
  run(link, { ...options, argv: ["sh", "-c", script] });
