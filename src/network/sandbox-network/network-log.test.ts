import { appendFileSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { SandboxId } from "../../contract/ids.ts";
import { SecretRevoked } from "../../contract/network/network-event.ts";
import { openNetworkLog, readNetworkLog } from "./network-log.ts";

let folder = "";
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "caisson-test-network-log-"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const sandbox = SandboxId.parse("sb_aaaaaaaaaaaa");
/** Distinguished by `by`; `bytes` makes it long. */
const event = (number: number, { bytes = 0 } = {}) => SecretRevoked.make({ sandbox, secret: `S${"x".repeat(bytes)}`, by: `${number}` });
const numbersIn = async () => (await readNetworkLog(folder)).map((each) => [each.seq, Number((each.data as { by: string }).by)]);
const file = (name: "network.jsonl" | "network.1.jsonl") => join(folder, name);
const MEGABYTE = { bytes: 1024 * 1024 };

const upTo = (count: number) => Array.from({ length: count }, (_, at) => [at + 1, at + 1]);

test("keeps the numbers of events when the oldest are dropped", async () => {
  const log = openNetworkLog(folder);
  for (let number = 1; number <= 5; number++) log.append(event(number, MEGABYTE));
  expect(await numbersIn()).toEqual(upTo(5));
  for (let number = 6; number <= 20; number++) log.append(event(number, MEGABYTE));
  const numbers = await numbersIn();
  expect(numbers).toEqual(upTo(20).slice(-numbers.length));
  expect(numbers.length).toBeLessThan(7);
});

test("lets each of two writers find the file that the other started", async () => {
  const one = openNetworkLog(folder);
  for (let number = 1; number <= 3; number++) one.append(event(number, MEGABYTE));
  openNetworkLog(folder).append(event(4, MEGABYTE));
  one.append(event(5, MEGABYTE));
  expect(await numbersIn()).toEqual(upTo(5));
});

test("continues the numbers of a log from an earlier version", async () => {
  const lines = (from: number, to: number) =>
    Array.from({ length: to - from + 1 }, (_, at) => `${JSON.stringify(event(from + at, MEGABYTE))}\n`).join("");
  writeFileSync(file("network.1.jsonl"), lines(1, 3));
  writeFileSync(file("network.jsonl"), lines(4, 6));
  expect(await numbersIn()).toEqual(upTo(6));
  openNetworkLog(folder).append(event(7));
  expect((await numbersIn()).at(-1)).toEqual([7, 7]);
});

test("numbers an unreadable line without returning it, and ignores an unfinished one", async () => {
  const log = openNetworkLog(folder);
  log.append(event(1));
  appendFileSync(file("network.jsonl"), '{"type":\n');
  log.append(event(3));
  appendFileSync(file("network.jsonl"), JSON.stringify(event(4)));
  expect(await numbersIn()).toEqual([
    [1, 1],
    [3, 3],
  ]);
});

test("reads each event once, even while one file becomes the other", async () => {
  const log = openNetworkLog(folder);
  let written = 0;
  for (let round = 0; round < 8; round++) {
    const reading = numbersIn();
    // A file has room for three.
    for (let more = 0; more < 4; more++) log.append(event(++written, MEGABYTE));
    const numbers = (await reading).map(([seq]) => seq ?? 0);
    expect(numbers).toEqual(Array.from(numbers, (_, at) => (numbers[0] ?? 0) + at));
  }
});

test("does not read endlessly if a part is missing or damaged", async () => {
  const log = openNetworkLog(folder);
  for (let number = 1; number <= 5; number++) log.append(event(number, MEGABYTE));
  renameSync(file("network.jsonl"), file("network.1.jsonl"));
  const rest = readFileSync(file("network.1.jsonl"), "utf8");
  writeFileSync(file("network.jsonl"), rest);
  expect((await numbersIn()).length).toBeGreaterThan(0);
});
