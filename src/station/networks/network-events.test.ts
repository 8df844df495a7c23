import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { SandboxId } from "../../contract/ids.ts";
import { SecretRevoked } from "../../contract/network-event.ts";
import { openNetworkLog } from "../../network/held/network-log.ts";
import { eventsInFolder } from "./network-events.ts";

let folder = "";
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "caisson-test-network-events-"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const sandbox = SandboxId.parse("sb_aaaaaaaaaaaa");
const long = (number: number) => SecretRevoked.make({ sandbox, secret: "x".repeat(1024 * 1024), by: `${number}` });

test("each event of a log is told once, also when its oldest are dropped; whoever comes back goes on where it was", async () => {
  const log = openNetworkLog(folder);
  const ends = new AbortController();
  const followed = eventsInFolder(folder, { follow: true, signal: ends.signal });
  const next = async () => (await followed.next()).value?.seq;
  for (let number = 1; number <= 3; number++) log.append(long(number));
  expect([await next(), await next(), await next()]).toEqual([1, 2, 3]);
  // More than a log keeps: what it has of them is told, from the oldest on.
  for (let number = 4; number <= 30; number++) log.append(long(number));
  const seen: number[] = [];
  while (seen.at(-1) !== 30) seen.push((await next()) ?? 0);
  expect(seen).toEqual(Array.from(seen, (_, at) => 30 - seen.length + 1 + at));
  log.append(long(31));
  expect(await next()).toBe(31);
  ends.abort();
  expect((await followed.next()).done).toBe(true);
  log.append(long(32));
  const after: number[] = [];
  for await (const { seq } of eventsInFolder(folder, { fromSeq: 31 })) after.push(seq);
  expect(after).toEqual([31, 32]);
});
