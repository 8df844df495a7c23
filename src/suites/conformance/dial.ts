import assert from "node:assert/strict";
import { ignore } from "../../lib/failures.ts";
import type { OwnedSandbox } from "../../sandbox/sandbox.ts";
import type { ConformanceContext, Skipped } from "./context.ts";
import { describeEnd, finish, start, within } from "./expectations.ts";

export const noClient: Skipped = { skipped: "no program inside can connect to a port: no python3, node, perl or busybox nc" };

/**
 * Connects from inside, sends, closes the sending half, and returns the reply. Returns null if the template has no
 * program for it.
 */
export async function dial(
  context: ConformanceContext,
  sandbox: OwnedSandbox,
  { port, address = "127.0.0.1", bytes }: { port: number; address?: string; bytes: Buffer },
): Promise<Buffer | null> {
  const client = await start(sandbox, "dial", { args: [String(port), address], stdin: "pipe" });
  const finished = finish(context, client);
  const sendBytes = async () => {
    await client.write(bytes);
    await client.closeStdin();
  };
  // A client that cannot connect reads nothing; its exit status says more.
  await ignore(within(context, "sending", sendBytes()), "only the answer counts");
  const { stdout, stderr, ended } = await finished;
  if (ended.kind === "exited" && ended.exitCode === 3) return null;
  assert.equal(describeEnd(ended), "exited 0", `dial ended with ${describeEnd(ended)}: ${stderr.toString().slice(-500)}`);
  return stdout;
}
