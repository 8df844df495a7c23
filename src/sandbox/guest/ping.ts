import { CaissonError } from "../../contract/error/error.ts";
import { encodeFrame, frameCode, frameName, protocolError } from "./frame.ts";
import type { Link } from "./link.ts";

/** Sends a ping and waits for the answer. Throws `timeout`, `lost`. */
export function ping(link: Link, timeoutMs: number): Promise<{ roundTripMs: number }> {
  return new Promise((resolve, reject) => {
    const startedMs = performance.now();
    const stream = link.open({
      onFrame(type) {
        if (type !== frameCode.PONG) throw protocolError(`${frameName(type)} as an answer to PING`);
        clearTimeout(timer);
        resolve({ roundTripMs: performance.now() - startedMs });
        return true;
      },
      onLost(error) {
        clearTimeout(timer);
        reject(error);
      },
    });
    const timer = setTimeout(() => {
      link.retire(stream);
      reject(new CaissonError("timeout", `the guest did not answer a ping within ${timeoutMs} ms`));
    }, timeoutMs);
    link.send(encodeFrame("PING", stream));
  });
}
