import { closeSync, openSync } from "node:fs";
import { releaseRange, reserveRange } from "../identity/id-ranges.ts";
import { withRange } from "../identity/identity.ts";
import type { OciContext } from "../oci-context.ts";

/**
 * A user namespace with its own network namespace, held by open descriptors, so that they vanish with this process at
 * the latest.
 */
export interface HeldNamespaces {
  user: number;
  network: number;
  /** The start of the namespaces' id range. */
  firstId: number;
  close(): void;
}

/** Creates a pair in a short-lived child, and takes it over through /proc before the child ends. */
export async function makeNamespaces(oci: OciContext): Promise<HeldNamespaces> {
  let held: HeldNamespaces | undefined;
  const holder = `/proc/${process.pid}`;
  const firstId = await reserveRange(oci, holder);
  await oci.launch({
    what: "namespaces",
    plan: withRange(oci.identity(), firstId).plan,
    onLine: (line) => {
      const pid = /^pid (\d+)$/.exec(line)?.[1];
      if (pid === undefined) return;
      const user = openSync(`/proc/${pid}/ns/user`, "r");
      const network = openSync(`/proc/${pid}/ns/net`, "r");
      held = {
        user,
        network,
        firstId,
        close() {
          releaseRange(oci, firstId, holder);
          closeSync(user);
          closeSync(network);
        },
      };
    },
  });
  if (held === undefined) throw new Error("unreachable: the launcher succeeded without output");
  return held;
}
