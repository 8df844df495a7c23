import assert from "node:assert/strict";
import type { OwnedSandbox } from "../../sandbox/sandbox.ts";
import type { ConformanceContext, Skipped } from "./context.ts";
import { describeEnd, finish, start, within } from "./expectations.ts";

export const noClient: Skipped = { skipped: "nothing inside can connect to a port: no python3, node, perl or busybox nc" };

/**
 * Connects from inside, sends, closes the sending half, and gives what came back; null when the template has no means
 * for it.
 */
export async function dial(
  context: ConformanceContext,
  sandbox: OwnedSandbox,
  { port, address = "127.0.0.1", bytes }: { port: number; address?: string; bytes: Buffer },
): Promise<Buffer | null> {
  const client = await start(sandbox, "dial", { args: [String(port), address], stdin: "pipe" });
  const finished = finish(context, client);
  const sent = async () => {
    await client.write(bytes);
    await client.closeStdin();
  };
  // Whoever cannot connect reads nothing; how it ended says more.
  await within(context, "what is sent", sent()).catch(() => {});
  const { stdout, stderr, ended } = await finished;
  if (ended.kind === "exited" && ended.exitCode === 3) return null;
  assert.equal(describeEnd(ended), "exited 0", `dial ended with ${describeEnd(ended)}: ${stderr.toString().slice(-500)}`);
  return stdout;
}
