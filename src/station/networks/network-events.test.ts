import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { SandboxId } from "../../contract/ids.ts";
import { SecretRevoked } from "../../contract/network/network-event.ts";
import { openNetworkLog } from "../../network/sandbox-network/network-log.ts";
import { eventsInFolder } from "./network-events.ts";

let folder = "";
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "caisson-test-network-events-"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const sandbox = SandboxId.parse("sb_aaaaaaaaaaaa");
const long = (number: number) => SecretRevoked.make({ sandbox, secret: "x".repeat(1024 * 1024), by: `${number}` });

test("delivers each event once, even if the oldest are dropped", async () => {
  const log = openNetworkLog(folder);
  const ends = new AbortController();
  const events = eventsInFolder(folder, { follow: true, signal: ends.signal });
  const next = async () => (await events.next()).value?.seq;
  for (let number = 1; number <= 3; number++) log.append(long(number));
  expect([await next(), await next(), await next()]).toEqual([1, 2, 3]);
  // These are more than a log stores: the reader gets all events from the oldest stored one on.
  for (let number = 4; number <= 30; number++) log.append(long(number));
  const seen: number[] = [];
  while (seen.at(-1) !== 30) seen.push((await next()) ?? 0);
  expect(seen).toEqual(Array.from(seen, (_, at) => 30 - seen.length + 1 + at));
  log.append(long(31));
  expect(await next()).toBe(31);
  ends.abort();
  expect((await events.next()).done).toBe(true);
  log.append(long(32));
  const after: number[] = [];
  for await (const { seq } of eventsInFolder(folder, { fromSeq: 31 })) after.push(seq);
  expect(after).toEqual([31, 32]);
});
